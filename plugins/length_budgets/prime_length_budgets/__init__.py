"""Length budgets: how many thinking tokens a group's prompt asks for.

Found through the entry point `length_budget.discrete`; drawn by the worker from the assignment's
own random words, so that a validator draws the same.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Annotated, Literal

from pydantic import Field, model_validator

from prime_core.api import (
    Context,
    Instruction,
    LengthBudgetSpec,
    Params,
    Rng,
    Task,
    hookimpl,
)

__all__ = ["DiscreteBudget", "DiscreteParams", "make_discrete", "prime_length_budgets"]

Target = Annotated[int, Field(gt=0)]


class DiscreteParams(Params):
    """A few targets, how often each is drawn, and how they are asked for."""

    # INTELLECT-2 (arXiv 2505.07291), the targets of its short run.
    targets: tuple[Target, ...] = Field(
        (1000, 2000, 3000, 4000), min_length=1, description="tokens a prompt may ask for"
    )
    weights: tuple[Target, ...] | None = Field(
        None, description="whole-number share of each target; default is equal shares"
    )
    classes: dict[str, tuple[Target, ...]] = Field(
        default_factory=dict,
        description="the targets a node class may draw, out of targets; others draw from all",
    )
    instruction: str = Field(
        "Think for {budget} tokens before giving a response.",
        description="the sentence that asks for it; {budget} becomes the number",
    )
    place: Literal["system", "user"] = Field("user", description="message that it is appended to")

    @model_validator(mode="after")
    def _parts_fit_together(self) -> DiscreteParams:
        if len(set(self.targets)) != len(self.targets):
            raise ValueError("a target stands twice in targets; use weights to draw it more often")
        if self.weights is not None and len(self.weights) != len(self.targets):
            raise ValueError(
                f"{len(self.weights)} weights for {len(self.targets)} targets; give one a target"
            )
        for name, allowed in self.classes.items():
            unknown = sorted(set(allowed) - set(self.targets))
            if unknown:
                raise ValueError(f"class {name!r} names {unknown}, which targets doesn't hold")
            if not allowed or len(set(allowed)) != len(allowed):
                raise ValueError(f"class {name!r} needs at least one target, each once")
        if "{budget}" not in self.instruction:
            raise ValueError("instruction must hold {budget}, the place of the number")
        return self


class DiscreteBudget:
    """Draws one of a few targets, with whole-number weights, from one bounded random integer."""

    def __init__(self, params: DiscreteParams) -> None:
        self._params = params
        self._weights = dict(
            zip(params.targets, params.weights or (1,) * len(params.targets), strict=True)
        )

    def draw(self, rng: Rng, task: Task, node_class: str, step: int) -> int:
        """The group's target, one of those of the node's class."""
        allowed = self._params.classes.get(node_class, self._params.targets)
        bounds = list(accumulate(self._weights[target] for target in allowed))
        drawn = rng.below(bounds[-1])
        return next(target for target, bound in zip(allowed, bounds, strict=True) if drawn < bound)

    def instruction(self, budget: int) -> Instruction:
        """The sentence with the number in it, and its message."""
        # Not str.format: a template may hold other braces, of LaTeX or JSON.
        text = self._params.instruction.replace("{budget}", str(budget))
        return Instruction(text, self._params.place)


def make_discrete(params: DiscreteParams, context: Context) -> DiscreteBudget:
    """The length budget `discrete`."""
    return DiscreteBudget(params)


@hookimpl
def prime_length_budgets() -> list[LengthBudgetSpec]:
    """Register the length budget."""
    return [
        LengthBudgetSpec(
            name="discrete",
            params=DiscreteParams,
            factory=make_discrete,
            summary="One of a few token targets, by node class and weight",
        )
    ]
