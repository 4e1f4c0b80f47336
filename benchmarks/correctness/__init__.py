"""Calibration, accuracy of posteriors and predictions, records, and recovery after kills."""
