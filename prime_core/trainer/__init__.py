"""The trainer: closed batches in, policy versions out (GRPO on FSDP2).

Shape legend of this package, as suffixes of tensor names: T packed inputs of a micro-batch, N the
tokens that are trained on them, V vocabulary, D hidden, H attention heads, C rows of a chunk.
"""
