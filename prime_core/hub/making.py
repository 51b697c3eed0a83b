"""Calls a plugin's factory and holds what it makes against the kind's protocol.

Called by `Hub.make`. A factory that raises, exits or makes half an object is a `PluginError`.
"""

from __future__ import annotations

from pydantic import BaseModel

from prime_core.api import Context, PrimeError, Spec
from prime_core.hub.kinds import KINDS, members, missing_members
from prime_core.hub.records import PluginRecord
from prime_core.hub.refusal import describe, refusal


def make(record: PluginRecord, spec: Spec, params: BaseModel, context: Context) -> object:
    """The object that the factory makes.

    Raises:
        PluginError: of phase configured.
    """
    try:
        made: object = spec.factory(params, context)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a factory may call sys.exit()
        fix = error.fix if isinstance(error, PrimeError) else None
        raise refusal(
            record, "configured", f"its factory raised {describe(error)}", fix=fix
        ) from error
    protocols = KINDS[record.kind].protocols
    missing = missing_members(made, protocols)
    if missing:
        needs = " or ".join(", ".join(members(protocol)) for protocol in protocols)
        raise refusal(
            record,
            "configured",
            f"its factory made a {type(made).__name__} without {', '.join(missing)}",
            fix=f"give what the factory of {record.distribution} makes: {needs}",
        )
    return made
