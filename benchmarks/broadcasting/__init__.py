"""Parts of `benchmarks/shardcast.py`."""
