"""A page about a study: one HTML file without network and server."""
