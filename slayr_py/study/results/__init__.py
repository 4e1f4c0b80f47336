"""Look at a study: its result, tables, figures, and the fits behind its suggestions."""
