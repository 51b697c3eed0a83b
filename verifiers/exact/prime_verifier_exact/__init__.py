"""Exact text, or the number after ####."""
