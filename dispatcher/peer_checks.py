"""When the engine looks after its peers' processes and leases.

Everyone is looked after twice a second. A look at an agent that has nothing to do sends it a
ping. A thousand of them in one turn of the engine would keep a result waiting that has just come
in, so that many are looked after in parts, evenly over the half second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from math import ceil

from dispatcher.ports import Backend

#: Seconds between looks at the same peer.
CHECK_EVERY_S = 0.5

#: Peers of one look, about a millisecond's work.
PART = 32


class PeerChecks:
    """Says which peers are to be looked after now.

    Args:
        backends: by name; some may come and go.
        monotonic: a clock in seconds.
    """

    def __init__(
        self, backends: Mapping[str, Backend], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._backends = backends
        self._monotonic = monotonic
        self._parts: list[list[str]] = []  # of this round, the next one last
        self._pause_s = CHECK_EVERY_S
        self._next = monotonic()

    def wait_s(self) -> float:
        """Seconds until somebody is due; zero or less if somebody is."""
        return self._next - self._monotonic()

    @property
    def begins(self) -> bool:
        """Whether the next part is the first of a round."""
        return not self._parts

    def part(self) -> list[tuple[str, Backend]]:
        """Return the peers that are due now, with their names; the next ones follow later."""
        if not self._parts:
            names = list(self._backends)
            parts = max(1, ceil(len(names) / PART))
            self._parts = [names[part::parts] for part in range(parts)]
            self._pause_s = CHECK_EVERY_S / parts
        self._next = self._monotonic() + self._pause_s
        names = self._parts.pop()
        return [(name, self._backends[name]) for name in names if name in self._backends]
