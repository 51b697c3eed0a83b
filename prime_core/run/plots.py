"""The picture of a run: reward, lengths, clips and lag over steps, as PNG and as one HTML page.

Called by the demo and by `prime-core report --plot`. The page holds everything inline, so that it
can be mailed; it asks no server for anything.
"""

from __future__ import annotations

import html
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prime_core.api.errors import RunError
from prime_core.store.metrics import read_metrics

SMOOTH = 10  # steps of the running mean


@dataclass(frozen=True)
class Plots:
    """Where the files lie."""

    png: Path
    html: Path


def trainer_records(run_dir: Path) -> list[Mapping[str, Any]]:
    """The trainer's record of every step, the last one where a step was trained again."""
    by_step = {
        int(record["step"]): record
        for record in read_metrics(run_dir)
        if record["process"] == "trainer" and "loss/mean" in record
    }
    return [by_step[step] for step in sorted(by_step)]


def running_mean(values: Sequence[float], width: int) -> list[float]:
    """Mean over the last `width` values at each place."""
    means = []
    for end in range(1, len(values) + 1):
        window = values[max(0, end - width) : end]
        means.append(sum(window) / len(window))
    return means


def generated_scores(run_dir: Path) -> dict[int, float]:
    """Mean task score of all that was generated for a step, groups without signal included."""
    sums: dict[int, list[float]] = {}
    for record in read_metrics(run_dir):
        if record.get("score_mean") is not None and record.get("scored"):
            total = sums.setdefault(int(record["step"]), [0.0, 0.0])
            total[0] += float(record["score_mean"]) * int(record["scored"])
            total[1] += int(record["scored"])
    return {step: total / count for step, (total, count) in sorted(sums.items())}


PANELS: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
    ("Reward", "mean", (("reward/mean", "batch, total"), ("score/mean", "batch, task"))),
    ("Length", "tokens", (("length/mean", "mean"), ("length/max", "longest"))),
    (
        "Clipped tokens",
        "share",
        (("loss/clip_low", "low"), ("loss/clip_high", "high"), ("loss/clip_delta", "delta")),
    ),
    ("Entropy", "nats per token", (("policy/entropy", "policy"),)),
    ("Engine against trainer", "nats per token", (("mismatch/kl", "mismatch"),)),
    ("Seconds per step", "seconds", (("time/busy_s", "busy"), ("time/idle_s", "idle"))),
)


def draw(
    records: Sequence[Mapping[str, Any]],
    generated: Mapping[int, float],
    evaluations: Mapping[int, float],
) -> Any:
    """The matplotlib figure of a run.

    Args:
        records: of `trainer_records`.
        generated: of `generated_scores`.
        evaluations: policy version to held-out accuracy, drawn into the first panel.
    """
    from matplotlib.figure import Figure

    steps = [int(record["step"]) for record in records]
    figure = Figure(figsize=(11, 6.2), layout="constrained")
    for axes, (title, unit, lines) in zip(figure.subplots(2, 3).flat, PANELS, strict=True):
        for key, label in lines:
            values = [float(record.get(key, 0.0)) for record in records]
            if key == "score/mean" and values == [float(r.get("reward/mean", 0)) for r in records]:
                continue
            (line,) = axes.plot(steps, running_mean(values, SMOOTH), label=label, linewidth=1.6)
            axes.plot(steps, values, color=line.get_color(), alpha=0.2, linewidth=0.8)
        if title == "Reward" and generated:
            means = running_mean(list(generated.values()), SMOOTH)
            axes.plot(list(generated), means, label="task, all generated", linewidth=1.6)
        if title == "Reward" and evaluations:
            versions = sorted(evaluations)
            axes.plot(
                versions,
                [evaluations[v] for v in versions],
                "o--",
                color="black",
                label="held-out accuracy",
            )
        axes.set_title(title)
        axes.set_xlabel("rollout step")
        axes.set_ylabel(unit)
        axes.grid(alpha=0.25)
        axes.legend(fontsize=8)
    return figure


def plot_run(
    run_dir: Path,
    out: Path,
    *,
    evaluations: Mapping[int, float] | None = None,
    facts: Mapping[str, str] | None = None,
) -> Plots:
    """Write `run.png` and `run.html` into `out`.

    Raises:
        RunError: no step was trained yet, or matplotlib isn't installed.
    """
    records = trainer_records(run_dir)
    if not records:
        raise RunError("no step was trained yet", where=str(run_dir), fix="plot it later")
    try:
        figure = draw(records, generated_scores(run_dir), evaluations or {})
    except ImportError as error:
        raise RunError("plots need matplotlib", fix="pip install 'prime-core[plot]'") from error
    out.mkdir(parents=True, exist_ok=True)
    plots = Plots(out / "run.png", out / "run.html")
    figure.savefig(plots.png, dpi=120)
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg")
    svg = drawn.getvalue()
    plots.html.write_text(_page(run_dir.name, svg[svg.index("<svg") :], facts or {}))
    return plots


def _page(title: str, svg: str, facts: Mapping[str, str]) -> str:
    rows = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
        for name, value in facts.items()
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem;
       color: #1b1f24; background: #fff; }}
h1 {{ font-size: 1.4rem; }}
svg {{ width: 100%; height: auto; }}
table {{ border-collapse: collapse; margin: 1rem 0; }}
th, td {{ text-align: left; padding: .25rem 1.5rem .25rem 0; vertical-align: top; }}
th {{ font-weight: 600; }}
tr + tr {{ border-top: 1px solid #e3e6ea; }}
</style></head>
<body><h1>{html.escape(title)}</h1><table>{rows}</table>{svg}</body></html>
"""
