"""Dishonest nodes: they share the honest worker's code and cheat in one way each.

Run by `prime-core attack`, by tests and by benchmarks/attacks.py against a validator's own judging
code. docs/explanation/attacks.md shows what is caught, by which check, and what can't be.
"""
