"""Data filters: nonzero_signal (online), pass_rate_band (offline)."""
