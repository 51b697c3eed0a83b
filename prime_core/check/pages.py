"""What a rule demands, as text for `--explain` and as the page docs/checks/<rule>.md.

`python -m prime_core.check.pages FOLDER` writes the pages; a test holds them to the rules.
"""

from __future__ import annotations

import sys
from pathlib import Path

from prime_core.check.registry import find, rules
from prime_core.check.rule import TIME_LIMIT_S, Rule

COSTS = {
    "static": "reads files, imports nothing",
    "import": "imports the package in a jailed process",
    "run": "runs the package in jailed processes",
    "train": "reads committed evidence; `make proofs` makes it again",
}


def page(rule: Rule) -> str:
    """The page of a rule, Markdown."""
    kinds = ", ".join(rule.kinds) or "the distribution"
    return f"""# {rule.id}: {rule.title}

| name | level | severity | looks at | cost | time limit |
|---|---|---|---|---|---|
| `{rule.name}` | {rule.level} | {rule.severity} | {kinds} | {rule.cost}: {COSTS[rule.cost]} | \
{TIME_LIMIT_S[rule.cost]:g} s |

{rule.why}

To mend it: {rule.fix}.

## Bad

```{_language(rule.bad)}
{rule.bad}
```

## Good

```{_language(rule.good)}
{rule.good}
```
"""


def _language(text: str) -> str:
    first = text.lstrip().partition("\n")[0]
    if first.startswith("#") and " " in first and "=" not in text.partition("\n")[0]:
        return "markdown"
    return "toml" if first.startswith(("[", '"')) or "dependencies = " in text else "python"


def index() -> str:
    """The table of all rules, Markdown."""
    lines = ["# The rules of `prime-core check`", ""]
    lines += ["How to use them: [check an environment](../how-to/check-an-environment.md).", ""]
    lines += ["| rule | name | level | cost | what must hold |", "|---|---|---|---|---|"]
    lines += [
        f"| [{rule.id}]({rule.id}.md) | {rule.name} | {rule.level} | {rule.cost} | {rule.title} |"
        for rule in rules()
    ]
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """Every file of docs/checks, name to text."""
    return {"README.md": index(), **{f"{rule.id}.md": page(rule) for rule in rules()}}


def explanation(name: str) -> str:
    """What `--explain` prints: the page of a rule, or a line for each with `list`.

    Raises:
        RunError: no rule has that name.
    """
    if name == "list":
        return "\n".join(
            f"{rule.id}  {rule.level:<7} {rule.cost:<7} {rule.name:<20} {rule.title}"
            for rule in rules()
        )
    return page(find(name)).rstrip()


def main(folder: Path) -> None:
    """Write the pages; those of rules that are gone are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    made = pages()
    for path in folder.glob("*.md"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
