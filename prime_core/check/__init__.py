"""The conformance ladder: rules that say yes or no to a distribution of plugins, with reasons.

`prime-core check` is the caller. Static rules never import what they judge; everything else of it
runs in jailed child processes, so that nothing it does reaches this one.
"""
