"""The parts of `benchmarks/code_verifier.py`: material, alternatives, and what is measured."""
