"""Environments without training: held-out evaluation, and pass rates of tasks."""
