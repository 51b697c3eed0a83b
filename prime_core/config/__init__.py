"""The run config: loads, explains and validates without importing torch."""
