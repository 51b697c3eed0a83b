"""The parts of `benchmarks/math_verifier.py`: its material, what is measured, and the limits."""
