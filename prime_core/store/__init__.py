"""A run's objects: names, atomic write-once storage, file formats, policies, outcomes, metrics.

Processes meet only here. Every object is immutable; metrics, traces and logs are the run
directory's mutable files.
"""
