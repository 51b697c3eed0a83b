"""The engine `vllm`: vLLM in a child process, with seeded races, hidden states and live weights."""
