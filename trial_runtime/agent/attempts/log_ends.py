"""The ends of the logs of an attempt that is over, handed in with its end where nobody but its
agent sees its files: in a pod they go when it goes."""

from __future__ import annotations

import os
from itertools import islice
from typing import Optional

from trial_runtime import attempt_folder, wire
from trial_runtime.session_file import SessionFile

#: Bytes of all logs of one attempt together, and names in its folder that are looked at: each node
#: of a trial has two logs of its own.
MOST_BYTES = 256 << 10
_MOST_NAMES = 1000


def log_ends(session: SessionFile, most_bytes: int) -> Optional[wire.LogEnds]:
    """The ends of all logs of an attempt. Blocks for as long as its disk takes.

    Args:
        session: of the attempt, all of whose output was read.
        most_bytes: of each log; 0: nothing is wanted.
    """
    if not most_bytes:
        return None
    folder = session.folder
    try:
        with os.scandir(folder) as entries:
            names = sorted(each.name for each in islice(entries, _MOST_NAMES))
    except OSError:
        names = []  # it has printed nothing
    streams = [name for name in names if attempt_folder.stream_of(name) == name][: wire.MAX_LOGS]
    most = min(most_bytes, wire.MAX_LOG_END_BYTES, MOST_BYTES // max(1, len(streams)))
    ends = (_end_of(folder, stream, names, most) for stream in streams)
    return wire.LogEnds(session.trial, session.attempt, [each for each in ends if each is not None])


def _end_of(folder: str, stream: str, names: list[str], most: int) -> Optional[wire.LogEnd]:
    """The end of one log; None of what can be read no more, or is no file of the agent's making."""
    older = [x for x in names if x != stream and attempt_folder.stream_of(x) == stream]
    try:
        sizes = [os.lstat(os.path.join(folder, name)).st_size for name in (stream, *older)]
        before = max(0, sizes[0] - most)
        facts, data = attempt_folder.piece({"folder": folder}, stream, before, most)
    except OSError:
        return None
    if not facts:
        return None
    whole = (facts["version"], facts["identity"])
    return wire.LogEnd(stream, data, before, sum(sizes[1:]), *whole)
