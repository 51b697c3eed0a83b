"""Builds tiny models with character tokenizers on the spot; used by tests and by the demo.

Offline and seeded: the same arguments give the same weights on one machine, and nothing of torch's
global random state is used up.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Letters, digits and signs of the toy tasks: 44 symbols, so that prompts of tests can be words.
SYMBOLS: tuple[str, ...] = tuple("abcdefghijklmnopqrstuvwxyz0123456789+-*=? .\n")
PAD, START, END = "<|pad|>", "<|im_start|>", "<|im_end|>"

_BYTE_LEVEL = {ord(" "): "\u0120", ord("\n"): "\u010a"}

PLAIN_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
CHATML_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def build_tokenizer(
    directory: Path,
    *,
    symbols: Sequence[str] = SYMBOLS,
    pad_is_eos: bool = False,
    chat_template: str = CHATML_TEMPLATE,
) -> Any:
    """Save a tokenizer with one token a character, and return it.

    Ids are symbols in order, then END (the EOS token), then START and PAD where the template and
    `pad_is_eos` need them.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = [END]
    if START in chat_template:
        special.append(START)
    if not pad_is_eos:
        special.append(PAD)
    # Byte-level names (a space is \u0120): AutoTokenizer and vLLM rebuild a Qwen2 tokenizer, which
    # is byte-level whatever the saved file says, and would drop plain spaces in silence.
    names = [*(symbol.translate(_BYTE_LEVEL) for symbol in symbols), *special]
    backend = Tokenizer(
        models.BPE(vocab={name: index for index, name in enumerate(names)}, merges=[])
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(special)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token=END,
        pad_token=END if pad_is_eos else PAD,
        unk_token=END,  # a Qwen2 tokenizer without one adds its own, beyond the embedding
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = chat_template
    tokenizer.save_pretrained(directory)
    return tokenizer


def build_tiny_model(
    directory: Path,
    *,
    seed: int = 0,
    symbols: Sequence[str] = SYMBOLS,
    hidden: int = 64,
    layers: int = 2,
    heads: int = 4,
    kv_heads: int | None = None,
    intermediate: int | None = None,
    vocab: int | None = None,
    tied: bool = True,
    pad_is_eos: bool = False,
    chat_template: str = CHATML_TEMPLATE,
    initializer_range: float = 0.02,
    max_positions: int = 1024,
) -> Path:
    """Save a randomly initialised Qwen2 with its tokenizer in Hugging Face layout.

    Args:
        directory: made if absent; gets model.safetensors, config, generation config, tokenizer.
        vocab: rows of the embedding, at least the tokenizer's size; default is that size.
        initializer_range: standard deviation of the weights; 0.02 gives a nearly uniform policy,
            0.2 a peaked one.

    Returns:
        The directory.
    """
    import torch
    from transformers import GenerationConfig, Qwen2Config, Qwen2ForCausalLM
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer = build_tokenizer(
        directory, symbols=symbols, pad_is_eos=pad_is_eos, chat_template=chat_template
    )
    size = vocab or len(tokenizer)
    assert size >= len(tokenizer), f"vocab {size} is smaller than the tokenizer's {len(tokenizer)}"
    config = Qwen2Config(
        vocab_size=size,
        hidden_size=hidden,
        intermediate_size=intermediate or 4 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads or heads,
        max_position_embeddings=max_positions,
        tie_word_embeddings=tied,
        initializer_range=initializer_range,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen2ForCausalLM(config)
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    model.save_pretrained(directory)
    return directory
