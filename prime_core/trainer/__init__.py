"""The trainer: closed batches in, policy versions out (GRPO on FSDP2).

Shape legend of this package, as suffixes of tensor names: T packed tokens of a micro-batch, N the
tokens among them that are trained, V vocabulary, D hidden, H attention heads, C rows of a chunk.
"""
