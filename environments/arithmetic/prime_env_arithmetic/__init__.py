"""Procedural arithmetic with an exact verifier: several kinds and difficulties, held-out tasks by hash."""
