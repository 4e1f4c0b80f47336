"""Describe and store a fit: run record, environment, summary, labelled arrays and saved folders."""
