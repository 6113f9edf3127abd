"""Waiting for a search in the caller's thread, which may be interrupted."""

from __future__ import annotations

from collections.abc import Callable


def through_interrupts(wait: Callable[[], object], stop: Callable[[bool], object]) -> None:
    """Wait; the first interrupt asks running trials to finish, the second one stops them at once,
    and the third one is raised.

    Args:
        wait: blocks until it is over.
        stop: asks for that; true: at once.
    """
    kinds = iter((False, True))
    while True:
        try:
            wait()
            return
        except KeyboardInterrupt:
            now = next(kinds, None)
            if now is None:
                raise
            stop(now)
