"""`[engine]`: the inference engine, its sampling, and the limits of node classes.

A section of `prime_core.config.sections`. Invariant: no sampler here truncates.
"""

from __future__ import annotations

from pydantic import Field, ValidationInfo, field_validator

from prime_core.config.section import NAME, PluginChoice, Refusal, Section


class NodeClass(Section):
    """What nodes of one class may generate."""

    max_tokens: int = Field(gt=0, description="token limit of one completion")


class EngineSection(PluginChoice):
    """The inference engine, its sampling, and how many local workers run it."""

    use: str = Field(
        default="transformers", pattern=NAME, description="name of the inference engine"
    )
    temperature: float = Field(default=1.0, ge=1e-6, le=1e30, description="sampling temperature")
    max_tokens: int = Field(default=256, gt=0, description="token limit of one completion")
    max_prompt_tokens: int = Field(default=1024, gt=0, description="a longer prompt drops its task")
    max_turns: int = Field(
        default=8, gt=0, description="turn limit of environments with several turns"
    )
    top_p: float = Field(default=1.0, description="must be 1: a truncating sampler needs its mask")
    top_k: int = Field(default=0, description="must be 0: a truncating sampler needs its mask")
    min_p: float = Field(default=0.0, description="must be 0: a truncating sampler needs its mask")
    groups_per_submission: int = Field(default=8, gt=0, description="groups in one submission")
    workers: int = Field(default=1, ge=1, description="local worker processes")
    threads: int = Field(default=1, ge=1, description="torch threads of one worker")
    node_class: str = Field(default="default", description="class of the local workers")
    classes: dict[str, NodeClass] = Field(
        default_factory=dict, description="limits by node class; default is max_tokens"
    )

    @field_validator("top_p", "top_k", "min_p")
    @classmethod
    def _sampler_is_not_truncated(cls, value: float, info: ValidationInfo) -> float:
        if value != (1.0 if info.field_name == "top_p" else 0):
            raise Refusal(
                f"{info.field_name} = {value} truncates the sampler: it renormalises over the "
                "survivors, so the importance ratio is wrong without their mask, which isn't "
                "recorded",
                f"remove {info.field_name}",
            )
        return value

    def token_limit(self, node_class: str) -> int:
        """The token limit of one completion on a node of this class."""
        found = self.classes.get(node_class)
        return found.max_tokens if found else self.max_tokens
