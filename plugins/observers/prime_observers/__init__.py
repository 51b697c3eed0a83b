"""Observers of a run, a module each; found through entry points, nothing is imported from here."""
