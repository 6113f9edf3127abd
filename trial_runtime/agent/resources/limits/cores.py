"""The cores that trials are pinned to: the least loaded, distinct while there are enough."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence


class Cores:
    """The cores of this host, allocated and released. Owned by the agent's loop."""

    def __init__(self, cores: Sequence[int]) -> None:
        self._load = dict.fromkeys(cores, 0.0)
        self._allocated: dict[Hashable, dict[int, float]] = {}

    def allocate(self, key: Hashable, cpus: float) -> tuple[int, ...]:
        """Cores for that many CPUs, never more than there are.

        They are whole ones, and a last one that is shared where a part is left over. A key that
        has some already gets the same again.
        """
        if key in self._allocated:
            return tuple(sorted(self._allocated[key]))
        wanted = max(1, math.ceil(cpus - 1e-9))
        count = min(wanted, len(self._load))
        # The fullest that still has room for a part keeps whole ones free for whole ones.
        part = cpus - (wanted - 1)
        free = sorted(self._load, key=lambda core: (self._load[core], core))
        chosen = free[:count]
        if part < 1 and count == wanted:
            fits = [c for c in free[count - 1 :] if 0 < self._load[c] <= 1 - part + 1e-9]
            if fits:
                chosen[-1] = fits[-1]
        shares = dict.fromkeys(chosen, 1.0)
        if count == wanted:
            shares[chosen[-1]] = part
        for core, share in shares.items():
            self._load[core] += share
        self._allocated[key] = shares
        return tuple(sorted(chosen))

    def release(self, key: Hashable) -> None:
        """Free the cores of a key; does nothing for one without any."""
        for core, share in self._allocated.pop(key, {}).items():
            self._load[core] = max(0.0, self._load[core] - share)
            if self._load[core] < 1e-9:
                self._load[core] = 0.0
