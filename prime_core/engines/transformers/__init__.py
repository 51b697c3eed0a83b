"""The engine `transformers`: batched seeded sampling with a KV cache on Hugging Face models."""
