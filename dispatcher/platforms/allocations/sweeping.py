"""Sweeping: what an experiment without a head has left at a scheduler is cancelled."""

from __future__ import annotations

from dispatcher.platforms.allocations.allocation import AllocationState, Allocator


def sweep(allocator: Allocator, label: str) -> list[str]:
    """Cancel all allocations of a service that no head leads, and release the allocator.

    Agents that wait for a next head are ended with them; what they have not handed in is spooled.

    Args:
        allocator: of the service; nobody else may use it.
        label: the beginning of the names of its allocations; a dash follows.

    Returns:
        The names of those that had not ended; where there were none, what all of them shared is
        removed as well.

    Raises:
        BackendError: the scheduler cannot be asked, or refuses.
    """
    try:
        left = [
            each.name
            for each in allocator.look()
            if each.state is not AllocationState.ENDED and each.name.startswith(f"{label}-")
        ]
        if left:
            allocator.cancel(left, 0.0)
        else:
            allocator.clear()
        return sorted(left)
    finally:
        allocator.close()
