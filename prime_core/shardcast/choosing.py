"""Which relay to ask next: with probability proportional to success rate times bandwidth.

`download` asks and reports (INTELLECT-2, section 2.2.2). Both numbers are exponential moving
averages; every report heals all relays a little, so that none is forgotten, and a relay that served
bad bytes is left out for a time that doubles.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

ALPHA = 0.3  # weight of a new measurement in both averages; shardcast 0.3.2 has the same
HEAL = 0.01  # what every report gives back of a relay's success rate; likewise
FIRST_BAN_S = 30.0
LONGEST_BAN_S = 3600.0
FORGIVEN_S = 3600.0
FASTER = 1.5  # times: one that is only a little faster isn't worth a new request
ASKING_S = 0.1
_LEAST_BANDWIDTH = 1024.0  # bytes/s: no relay's weight is zero

Rule = Literal["sampled", "greedy", "uniform"]


@dataclass(slots=True)
class Relay:
    """What is known of one relay: success rate in [0, 1], bandwidth in bytes/s."""

    address: str
    success: float = 1.0
    bandwidth: float | None = None
    lies: int = 0
    banned_until: float = 0.0
    busy: int = 0  # transfers that run now

    def measure(self, size: int, seconds: float) -> None:
        """So many bytes took so long."""
        measured = size / max(seconds, 1e-6)
        if self.bandwidth is None:
            self.bandwidth = measured
        else:
            self.bandwidth += ALPHA * (measured - self.bandwidth)


class Relays:
    """All relays of one client; used by several threads.

    Args:
        addresses: their URLs, at least one.
        rule: `sampled` is the paper's; the others are for comparison.
        rng: replaced in tests.
        clock: monotonic seconds; replaced in tests.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        rule: Rule = "sampled",
        rng: random.Random | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        assert addresses, "a client needs a relay"
        self._relays = {address: Relay(address) for address in dict.fromkeys(addresses)}
        self._rule, self._rng, self._clock = rule, rng or random.Random(), clock
        self._lock = threading.Lock()

    @property
    def addresses(self) -> list[str]:
        """All of them, also those left out now."""
        return list(self._relays)

    def __getitem__(self, address: str) -> Relay:
        """One relay's numbers."""
        return self._relays[address]

    def choose(self, avoid: Collection[str] = ()) -> str | None:
        """A relay to ask, none of `avoid`; None where all are avoided or banned."""
        with self._lock:
            now = self._clock()
            able = [
                relay
                for relay in self._relays.values()
                if relay.address not in avoid and relay.banned_until <= now
            ]
            if not able:
                return None
            weights = [self._weight(relay) for relay in able]
            if self._rule == "greedy":
                return max(zip(weights, able, strict=True), key=lambda pair: pair[0])[1].address
            if self._rule == "uniform":
                return self._rng.choice(able).address
            return self._rng.choices(able, weights)[0].address

    def slower(
        self, address: str, size: int, within_s: float, avoid: Collection[str] = ()
    ) -> list[str] | None:
        """The relays that aren't clearly faster with so many bytes; None where no other one is.

        Args:
            address: the relay that has them under way.
            within_s: how long it will still take.
            avoid: relays that can't be asked.
        """
        with self._lock:
            now = self._clock()
            best = max((r.bandwidth or 0.0 for r in self._relays.values()), default=0.0)
            faster = set()
            for relay in self._relays.values():
                bandwidth = best if relay.bandwidth is None else relay.bandwidth
                able = relay.address not in (address, *avoid) and relay.banned_until <= now
                if able and bandwidth and FASTER * size / bandwidth + ASKING_S < within_s:
                    faster.add(relay.address)
            return [each for each in self._relays if each not in faster] if faster else None

    def succeeded(self, address: str, size: int, seconds: float) -> None:
        """A transfer of `size` bytes went well."""
        with self._lock:
            relay = self._relays[address]
            relay.success += ALPHA * (1 - relay.success)
            relay.measure(size, seconds)
            self._heal()

    def measured(self, address: str, size: int, seconds: float) -> None:
        """So much of a transfer came before it was cancelled: no failure, but it says how fast."""
        with self._lock:
            self._relays[address].measure(size, seconds)

    def failed(self, address: str) -> None:
        """A request failed; its bandwidth isn't touched, as nothing was measured."""
        with self._lock:
            relay = self._relays[address]
            relay.success -= ALPHA * relay.success
            self._heal()

    def lied(self, address: str) -> None:
        """It served what can't be right: leave it out, twice as long each time.

        An hour without a lie forgives one: a shard that a disk corrupted now and then, over
        months, must not keep an honest relay out for an hour.
        """
        with self._lock:
            relay = self._relays[address]
            relay.success = 0.0
            honest_s = max(0.0, self._clock() - relay.banned_until)
            relay.lies = max(0, relay.lies - int(honest_s / FORGIVEN_S))
            ban = min(FIRST_BAN_S * 2**relay.lies, LONGEST_BAN_S)
            relay.lies += 1
            relay.banned_until = self._clock() + ban

    def banned(self) -> list[str]:
        """Those left out now."""
        now = self._clock()
        return [relay.address for relay in self._relays.values() if relay.banned_until > now]

    def _heal(self) -> None:
        for relay in self._relays.values():
            relay.success = min(1.0, relay.success + HEAL)

    def _weight(self, relay: Relay) -> float:
        known = [r.bandwidth for r in self._relays.values() if r.bandwidth is not None]
        # One that was never measured is taken for the best, so that it gets measured.
        bandwidth = relay.bandwidth if relay.bandwidth is not None else max(known, default=1.0)
        return max(relay.success, 1e-3) * max(bandwidth, _LEAST_BANDWIDTH)
