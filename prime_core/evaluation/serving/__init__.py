"""An OpenAI-compatible endpoint over an inference engine; `prime-core serve` starts it."""
