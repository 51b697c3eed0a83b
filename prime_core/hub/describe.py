"""What `prime-core plugins` prints: the same facts as JSON and as text of 80 columns.

The JSON fields are documented in docs/reference/plugins.md and only ever grow.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeGuard

from prime_core.api import Json, PluginError, SanityCheckSpec, Spec
from prime_core.hub.kinds import OBSERVER
from prime_core.hub.records import PluginRecord

if TYPE_CHECKING:
    from prime_core.config.fields import FieldDoc
    from prime_core.hub.diagnosis import Diagnosis
    from prime_core.hub.hub import Hub

WIDTH = 80

# how a run config selects a plugin of each kind
_SELECT = {
    "environment": '[[environments]]\nuse = "{}"',
    "verifier": '[[environments]]\nverifier = {{ use = "{}" }}',
    "reward": '[reward]\nuse = "{}"',
    "length_budget": '[length_budget]\nuse = "{}"',
    "data_filter": '[[filters.offline]]  # or [[filters.online]]\nuse = "{}"',
    "inference_engine": '[engine]\nuse = "{}"',
    "sandbox": '[hosting]\nsandbox = {{ use = "{}" }}',
    "sanity_check": '[[checks]]\nuse = "{}"',
    "tracker": '[[trackers]]\nuse = "{}"',
    "loss": '[loss]\nuse = "{}"',
    "advantage": '[advantage]\nuse = "{}"',
    OBSERVER: '[plugins]\nobservers = ["{}"]',
}


def record_json(hub: Hub, record: PluginRecord) -> dict[str, Json]:
    """One plugin of `plugins list --json`."""
    return {**asdict(record), "blocked_by": hub.blocked_by(record)}


def list_text(hub: Hub, records: Sequence[PluginRecord]) -> str:
    """`plugins list`: by kind, one line a plugin."""
    if not records:
        return "no plugins are installed"
    width = max(len(record.name) for record in records)
    lines: list[str] = []
    for kind in dict.fromkeys(record.kind for record in records):
        lines.append(kind or "(no kind)")
        for record in (each for each in records if each.kind == kind):
            owner = f"{record.distribution} {record.version}"
            lines.append(f"  {record.name:<{width}}  {owner}{_note(hub, record)}")
    return "\n".join(lines)


def _note(hub: Hub, record: PluginRecord) -> str:
    if hub.blocked_by(record) is not None:
        return "  (blocked)"
    if record.shadowed:
        return "  (hidden by one earlier on sys.path)"
    several = len(hub.candidates(record.kind, record.name)) > 1
    return "  (name is taken twice)" if several else ""


def select_text(kind: str, name: str) -> str:
    """The lines of a run config that select a plugin."""
    return _SELECT[kind].format(name)


def find_by_text(hub: Hub, text: str) -> PluginRecord:
    """The plugin that KIND.NAME, NAME, or either with @DISTRIBUTION means.

    Raises:
        PluginError: there is none, or there are several.
    """
    label, _, distribution = text.partition("@")
    found = [
        record
        for record in hub.records()
        if label in (record.label, record.name)
        and distribution in ("", record.distribution)
        and not record.shadowed
    ]
    if len(found) == 1:
        return found[0]
    if found:
        choices = " or ".join(record.qualified for record in found)
        what, fix = f"{text!r} means {len(found)} plugins", f"ask for {choices}"
    else:
        import difflib

        names = sorted({name for record in hub.records() for name in (record.label, record.name)})
        near = difflib.get_close_matches(label, names, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]}?" if near else ""
        what = f"no installed plugin is called {text!r}{hint}"
        fix = "run `prime-core plugins list`, or pip install the distribution that provides it"
    raise PluginError(what, plugin=text, distribution=None, phase="found", fix=fix)


def show_json(
    record: PluginRecord, spec: Spec | None, parameters: Sequence[FieldDoc]
) -> dict[str, Json]:
    """`plugins show --json`; an observer has neither summary of its own nor parameters."""
    return {
        "kind": record.kind,
        "name": record.name,
        "summary": spec.summary if spec else record.summary,
        "distribution": record.distribution,
        "version": record.version,
        "module": record.module,
        "api": spec.api if spec else None,
        "api_requirement": record.api_requirement,
        "parameters": [
            {**asdict(each), "default": None if each.required else each.default}
            for each in parameters
        ],
        "select": select_text(record.kind, record.name),
        **({"cost": spec.cost, "catches": spec.catches} if _is_check(spec) else {}),
    }


def show_text(record: PluginRecord, spec: Spec | None, parameters: Sequence[FieldDoc]) -> str:
    """`plugins show`: summary, origin, parameters, how to select it."""
    lines = [record.label, *_wrap(spec.summary if spec else record.summary)]
    lines += _wrap(f"from {record.distribution} {record.version}, module {record.module}")
    if _is_check(spec):
        lines += ["", *_wrap(f"catches: {spec.catches}"), *_wrap(f"costs: {spec.cost}")]
    lines += ["", "parameters" if parameters else "no parameters"]
    for each in parameters:
        lines += _wrap(f"{each.name}: {each.type}")
        lines += _wrap("required" if each.required else f"default {each.default}", 6)
        lines += _wrap(each.help, 6)
    select = select_text(record.kind, record.name)
    return "\n".join([*lines, "", "to select it", *textwrap.indent(select, "  ").splitlines()])


def doctor_text(found: Iterable[Diagnosis]) -> str:
    """`plugins doctor`: one line a plugin, below it the cause, the fix and the command."""
    lines: list[str] = []
    for each in found:
        owner = f" ({each.distribution} {each.version})".replace(" )", ")")
        phase = f", {each.phase}" if each.status == "loaded" else ""
        owner = owner if each.distribution else ""
        lines += _wrap(f"{each.status:<12}  {each.label}{owner}{phase}", 0)
        lines += list(_findings(each))
    return "\n".join(lines) or "no plugins are installed"


def _findings(each: Diagnosis) -> Iterator[str]:
    if each.where:
        yield from _wrap(f"selected at {each.where}", 14)
    if each.status == "not selected":
        yield from _wrap(each.cause, 14)
    elif each.status == "failed":
        yield from _wrap(f"not {each.phase}: {each.cause}", 14)
        yield from _wrap(f"fix: {each.fix}" if each.fix else "", 14)
        # never broken over lines: it's to be pasted
        yield f"{' ' * 14}run: {each.command}"


def _is_check(spec: Spec | None) -> TypeGuard[SanityCheckSpec]:
    return isinstance(spec, SanityCheckSpec)


def _wrap(text: str, indent: int = 2) -> list[str]:
    """Lines of at most 80 columns; a path or a command is never broken inside."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )
