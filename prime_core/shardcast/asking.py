"""All relays asked the same thing at once, without waiting for the last of them.

`client` measures relays and asks for their versions through here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

GRACE_S = 1.0  # after the first answer, or twice what that took where it's longer


def ask_all(addresses: Sequence[str], ask: Callable[[str], bool]) -> list[str]:
    """Ask each in a thread of its own; those that haven't ended when it's gone on without them.

    Args:
        addresses: of the relays.
        ask: asks one; whether it has answered. Those that are late end when they do.
    """
    started = time.monotonic()
    condition = threading.Condition()
    open_, deadline = set(addresses), float("inf")

    def run(address: str) -> None:
        nonlocal deadline
        answered = False
        try:
            answered = ask(address)
        finally:
            with condition:
                open_.discard(address)
                now = time.monotonic()
                if answered:
                    deadline = min(deadline, now + max(GRACE_S, 2 * (now - started)))
                condition.notify()

    for address in addresses:
        threading.Thread(target=run, args=(address,), name=f"ask {address}", daemon=True).start()
    with condition:
        while open_ and (left := deadline - time.monotonic()) > 0:
            condition.wait(None if left == float("inf") else left)
        return sorted(open_)
