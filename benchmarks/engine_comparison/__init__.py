"""The parts of `benchmarks/engines.py`: what is measured of the engines, and their material."""
