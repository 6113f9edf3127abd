"""File systems that run full."""

from typing import Final

from dispatcher.core import events as e
from dispatcher.core.actions import Action, ReportDisk
from dispatcher.core.model import LowDisk, State
from dispatcher.core.transitions import Effects
from dispatcher.core.trouble import low_disk_text


def disk_low(state: State, event: e.DiskLow, out: list[Action]) -> None:
    """Start nothing new before the disk is full: what runs still needs to write its end.

    Args:
        state: changed in place.
        event: the place, with its free bytes.
        out: gets a report, the first time.
    """
    known = state.low_disks.get(event.place)
    since = known.since if known is not None else state.now
    low = LowDisk(event.free_bytes, event.needed_bytes, since)
    state.low_disks[event.place] = low
    if known is None:
        out.append(ReportDisk(event.place, low_disk_text(event.place, low)))


def disk_recovered(state: State, event: e.DiskRecovered, out: list[Action]) -> bool:
    """Go on. Late if this head has not seen the disk low: the one before it had.

    Args:
        state: changed in place.
        event: the place.
        out: gets a report.
    """
    if state.low_disks.pop(event.place, None) is None:
        return False
    out.append(ReportDisk(event.place, f"there is room on the disk of {event.place} again"))
    return True


EFFECTS: Final[Effects] = {e.DiskLow: disk_low, e.DiskRecovered: disk_recovered}
