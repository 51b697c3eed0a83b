"""Data filters: groups that carry a signal (online), tasks of a pass-rate band (offline).

Found through the entry points `data_filter.nonzero_signal` and `data_filter.pass_rate_band`; run
in the engine's own process.
"""

from prime_core.api import DataFilterSpec, hookimpl
from prime_data_filters.nonzero_signal import NonzeroSignalParams, make_nonzero_signal
from prime_data_filters.pass_rate_band import PassRateBandParams, make_pass_rate_band

__all__ = ["NonzeroSignalParams", "PassRateBandParams", "prime_data_filters"]


@hookimpl
def prime_data_filters() -> list[DataFilterSpec]:
    """Register both filters."""
    return [
        DataFilterSpec(
            name="nonzero_signal",
            params=NonzeroSignalParams,
            factory=make_nonzero_signal,
            summary="Online: keeps groups whose rewards differ, so that advantages aren't all 0",
        ),
        DataFilterSpec(
            name="pass_rate_band",
            params=PassRateBandParams,
            factory=make_pass_rate_band,
            summary="Offline: keeps tasks that a reference model solves neither never nor always",
        ),
    ]
