"""The model behind a suggestion: initial design, surrogate, kernel searches, fits and proposal."""
