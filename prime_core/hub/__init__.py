"""Plugins: found in metadata, selected by the run config, loaded one at a time, described.

Every process that needs a plugin asks a `Hub`; nothing else imports a plugin's module. A plugin
that isn't selected is never imported, and one that fails never takes another with it.
"""

from prime_core.hub.context import RunContext
from prime_core.hub.diagnosis import Diagnosis
from prime_core.hub.hub import Hub
from prime_core.hub.kinds import HOSTED_KINDS, KINDS
from prime_core.hub.records import PluginRecord
from prime_core.hub.selection import Selection, check_selections, selections

__all__ = [
    "HOSTED_KINDS",
    "KINDS",
    "Diagnosis",
    "Hub",
    "PluginRecord",
    "RunContext",
    "Selection",
    "check_selections",
    "selections",
]
