"""Results of a study: best trial, tables, figures, and the fits behind its suggestions."""
