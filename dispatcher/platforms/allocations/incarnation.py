"""The record of a worker's newest allocation on this machine's disk, written before it is asked
for: a head that dies between its order and its next breath has left the name of what it ordered."""

from __future__ import annotations

import logging
import secrets
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from trial_runtime.agent.processes.record import write_private

RECORD = "allocation.json"

_log = logging.getLogger("bequeath.backends.allocations")


class Incarnation(msgspec.Struct, frozen=True):
    """One allocation of a worker.

    ``number`` counts them from 1. ``ticket`` is the secret that its agent shows. ``stage``: it is
    about to be asked for, was asked for, was seen by its scheduler and is to end, is gone, or was
    cancelled (or seen not to be there) while no head led. ``at``: when it was asked for (seconds
    since the epoch, by this machine's clock).
    """

    number: int
    ticket: str
    stage: Literal["new", "ordered", "condemned", "gone", "swept"] = "new"
    at: float = 0.0


def read_incarnation(home: Path) -> Incarnation | None:
    """The newest one of the worker with this folder; None if there was none, or its record cannot
    be read: what it was about has no owner then, and is cancelled."""
    try:
        return msgspec.json.decode((home / RECORD).read_bytes(), type=Incarnation)
    except FileNotFoundError:
        return None
    except OSError as error:
        trouble = error.strerror or str(error)
    except msgspec.MsgspecError as error:
        trouble = str(error)
    _log.warning("%s: %s; its allocation, if there is one, is cancelled", home / RECORD, trouble)
    return None


def write_incarnation(home: Path, incarnation: Incarnation) -> None:
    """Write it durably; raises ``OSError``."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(home / RECORD, msgspec.json.encode(incarnation))


def note_swept(home: Path) -> None:
    """Note that the newest one of the worker with this folder was cancelled, or is not there: the
    next head waits for its end, and takes it for nobody's fault. Raises ``OSError``."""
    newest = read_incarnation(home)
    if newest is not None and newest.stage != "gone":
        write_incarnation(home, replace(newest, stage="swept"))


def next_incarnation(last: Incarnation | None) -> Incarnation:
    """The one to ask for: the last one, if nobody knows whether it was asked for; it has the same
    name then, and is not asked for twice."""
    if last is not None and last.stage == "new":
        return last
    number = 1 if last is None else last.number + 1
    return Incarnation(number, secrets.token_hex(16))
