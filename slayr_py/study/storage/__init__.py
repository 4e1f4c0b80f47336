"""Keep a study in Optuna's storage: attributes, opening, integrity, workers, trials and fit records."""
