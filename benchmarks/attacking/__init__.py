"""The parts of `attacks.py` that stand on their own: results that are kept, thresholds, power."""
