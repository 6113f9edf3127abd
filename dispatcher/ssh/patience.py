"""Tries again where that may help: pauses that grow, with a bound on all of it."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator

from dispatcher.errors import PassingBackendError
from dispatcher.ssh.connection import SshConnection, connect
from dispatcher.ssh.login import Dial
from dispatcher.ssh.target import SshTarget
from trial_runtime.pauses import growing_pause


def pauses(first_s: float = 0.5, most_s: float = 30.0) -> Iterator[float]:
    """Seconds to wait before each further try, without end: doubled, and each moved by up to a
    quarter, so that many connections that were lost together do not come back together."""
    for failures in itertools.count(1):
        pause_s = growing_pause(failures, first_s, most_s)
        yield pause_s * random.uniform(0.75, 1.25)  # noqa: S311 - no secret


def connect_patiently(
    target: SshTarget,
    *,
    limit_s: float,
    dial: Dial | None = None,
    giving_up: threading.Event | None = None,
    failed: Callable[[PassingBackendError, float], None] | None = None,
) -> SshConnection:
    """:func:`~dispatcher.ssh.connect`, tried again where that may help. Blocks.

    Args:
        target: The machine.
        limit_s: No try begins later than this many seconds from now.
        dial: As for ``connect``.
        giving_up: Set by another thread to make this raise the last error at once.
        failed: Called with the error of each try, and the seconds until the next.

    Raises:
        HostUnreachable: still so at the end, or when ``giving_up`` was set.
        HostKeyUnknown, HostKeyChanged, LoginRefused, UserError: at once.
    """
    deadline = time.monotonic() + limit_s
    stop = giving_up or threading.Event()
    for pause_s in pauses():
        try:
            return connect(target, dial=dial)
        except PassingBackendError as error:
            if stop.is_set() or time.monotonic() + pause_s > deadline:
                raise
            if failed is not None:
                failed(error, pause_s)
            if stop.wait(pause_s):
                raise
    raise AssertionError("pauses end never")
