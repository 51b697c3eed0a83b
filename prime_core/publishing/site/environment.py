"""What a project's page shows of one environment: facts, samples, score distributions, profile."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from prime_core.publishing.site.parts import badge, bars, fold, number, said, short, table

EXPLAINED = {
    "gold": "a completion that solves the task",
    "wrong": "one that looks right and isn't",
    "empty": "says nothing",
    "echo": "repeats the question",
}


def environment_part(shown: Mapping[str, Any]) -> str:
    """The section of one environment of the card."""
    name = escape(str(shown.get("name", "")))
    if "unavailable" in shown:
        reason = escape(str(shown["unavailable"]))
        return f"<section><h2>Environment {name}</h2><p>No samples: {reason}</p></section>"
    low, high = shown["score_range"]
    facts = [
        ("Tasks", f"{shown['tasks']:,}"),
        ("Scores", f"{number(low)} to {number(high)}"),
        ("Chance level", number(shown["chance_level"])),
        ("Turns", "several" if shown["multi_turn"] else "one"),
        ("Verifier", escape(str(shown["verifier"]))),
        ("Licence of the tasks", escape(str(shown["licence"]))),
        ("Needs", escape(", ".join(shown["needs"])) or "nothing"),
        ("Data set", short(str(shown["dataset_digest"]))),
    ]
    listed = "".join(f"<div><dt>{key}</dt><dd>{value}</dd></div>" for key, value in facts)
    measured = int(shown["measured"])
    samples = "".join(_sample(each, at == 0) for at, each in enumerate(shown["samples"]))
    spread = "".join(_distribution(each) for each in shown["distributions"])
    return (
        f"<section><h2>Environment {name}</h2><dl>{listed}</dl>"
        f"<h3>Samples</h3>{samples}"
        f"<h3>Score distributions</h3><p>What policies without a model get on {measured} "
        f'tasks.</p><div class="grid">{spread}</div></section>'
    )


def _sample(sample: Mapping[str, Any], first: bool) -> str:
    prompt = "".join(
        f'<p class="role">{escape(str(role))}</p>{said(str(text))}'
        for role, text in sample["prompt"]
    )
    answers = "".join(
        f'<p class="role">{escape(str(each["policy"]))} '
        f"{badge(number(each['value']) + ' ' + str(each['status']), 'plain')}</p>"
        f"{said(str(each['text']))}"
        for each in sample["completions"]
    )
    return fold(str(sample["id"]), prompt + answers, open_=first)


def _distribution(shown: Mapping[str, Any]) -> str:
    policy = str(shown["policy"])
    rows = [(number(value), int(count)) for value, count in shown["values"]]
    rows += [(str(status), int(count)) for status, count in shown["without_value"].items()]
    why = escape(EXPLAINED.get(policy, ""))
    return f"<div><h4>{escape(policy)}</h4><p>{why}</p>{bars(rows)}</div>"


def profile_part(profile: Mapping[str, Any] | None) -> str:
    """How hard the tasks are for a named model."""
    if not profile:
        return ""
    attempts, tasks = int(profile["attempts"]), int(profile["tasks"])
    rows = [(f"{passes} of {attempts}", int(count)) for passes, count in profile["histogram"]]
    share = f"{100 * int(profile['signal']) / tasks:.0f}%" if tasks else "none"
    facts = table(
        ("Model", "Tasks", "Attempts each", "Tasks with signal"),
        [(short(str(profile["model"])), f"{tasks:,}", str(attempts), share)],
    )
    return (
        f"<section><h2>Difficulty of {escape(str(profile['environment']))}</h2>{facts}"
        f"<p>How many tasks the model solved how often:</p>{bars(rows)}</section>"
    )
