"""The engine `openai`: models behind OpenAI-compatible endpoints, measured but never trained on."""
