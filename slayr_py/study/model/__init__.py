"""The model behind a suggestion: its initial design, its surrogate and kernel searches."""
