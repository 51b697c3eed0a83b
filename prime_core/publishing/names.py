"""Names of new distributions: one plugin name gives distribution, module and class.

Called by `new`; a name that isn't plain ASCII can't become a path, a module or a line of TOML.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass

from prime_core.api.errors import FormatError

_PLUGIN = re.compile(r"[a-z][a-z0-9_]{0,39}")
_SEPARATORS = re.compile(r"[-_. ]+")
# prefix of the distribution's name by kind of plugin
PREFIXES = {
    "environment": "prime-env",
    "verifier": "prime-verifier",
    "reward": "prime-reward",
    "length_budget": "prime-length-budget",
    "data_filter": "prime-data-filter",
    "advantage": "prime-advantage",
    "tracker": "prime-tracker",
    "observer": "prime-observer",
}


@dataclass(frozen=True, slots=True)
class Names:
    """What a new distribution is called.

    Attributes:
        plugin: name in run configs, e.g. word_count.
        distribution: e.g. prime-env-word-count.
        module: e.g. prime_env_word_count.
        class_name: e.g. WordCount.
    """

    plugin: str
    distribution: str
    module: str
    class_name: str


def names_of(kind: str, name: str) -> Names:
    """The names that follow from what was typed; the distribution's own name will do too.

    Raises:
        FormatError: nothing can be called that.
    """
    prefix = PREFIXES[kind]
    plain = _SEPARATORS.sub("_", name.strip().lower()).strip("_")
    plugin = plain.removeprefix(f"{prefix.replace('-', '_')}_")
    if not _PLUGIN.fullmatch(plugin) or keyword.iskeyword(plugin):
        raise FormatError(
            f"{name!r} can't be the name of a plugin",
            fix="use up to 40 of a-z, 0-9 and _, a letter first, e.g. word_count",
        )
    distribution = f"{prefix}-{plugin.replace('_', '-')}"
    words = [word for word in plugin.split("_") if word]
    class_name = "".join(word[0].upper() + word[1:] for word in words)
    return Names(plugin, distribution, distribution.replace("-", "_"), class_name)
