"""When what one machine makes shows on another: made, looked for, replaced and listed.

Each case has a folder of its own, since a change in one would refresh a client's view of all
names in it. :func:`lay` is before, :func:`prime` fills the readers' caches, :func:`publish`
changes what they have cached, :func:`watch` looks until they see it.
"""

from __future__ import annotations

import os
import time

from nfs_setup.verify.facts import Laid, Published, Seen
from nfs_setup.verify.files import code_of, digest, get, put, replace
from nfs_setup.verify.probe_churn import seed

#: ``new``: a name nobody asked for. ``sought``: one that was looked for before it was there,
#: which clients remember. ``announced``: the same for a reader that opens the folder before it
#: looks again, as readers of weights do. ``replaced``: another file under an old name.
#: ``listed``: a new name in a folder that was listed.
CASES = ("new", "announced", "sought", "replaced", "listed")

_BYTES = 192 << 10
_SOON_S, _LATER_S = 0.01, 0.2


def lay(folder: str) -> Laid:
    """Make one machine's cases as they are before anything changes, and what it will churn."""
    began = time.monotonic()
    os.mkdir(os.path.join(folder, "views"))
    for case in CASES:
        os.mkdir(os.path.join(folder, "views", case))
    put(_file(folder, "replaced"), os.urandom(_BYTES))
    put(os.path.join(folder, "views", "listed", "before"), b"")
    seed(folder)
    return Laid(time.monotonic() - began)


def prime(folders: list[str], limit_s: float) -> Laid:
    """Look at everybody's cases, as a reader does who comes too early."""
    began = time.monotonic()
    for folder in folders:
        while not os.path.exists(_file(folder, "replaced")):
            if time.monotonic() - began > limit_s:
                raise FileNotFoundError(2, "does not show here", _file(folder, "replaced"))
            time.sleep(_SOON_S)
        get(_file(folder, "replaced"))
        for case in ("announced", "sought"):
            os.path.exists(_file(folder, case))
        os.listdir(os.path.join(folder, "views", "listed"))
    return Laid(time.monotonic() - began)


def publish(folder: str) -> Published:
    """Change one machine's cases, each the way weights are published."""
    digests = {}
    for case in CASES:
        content = os.urandom(_BYTES)
        replace(_file(folder, case), content)
        digests[case] = digest(content)
    found = os.stat(_file(folder, "new"))
    return Published(digests, found.st_uid, found.st_gid)


def watch(folders: dict[str, str], wanted: dict[str, str], limit_s: float) -> Seen:
    """Open everything again and again until it is as it was published.

    A file that is there and is neither what was there before nor what was published is torn;
    the old one is only told from that where a reader saw it, so for ``replaced`` anything but
    a file of the full size counts.

    Args:
        folders: the folder of each writer, by its name.
        wanted: the digest of what was published, by ``writer/case``.
        limit_s: seconds after which what was not seen counts as never seen.
    """
    began = time.monotonic()
    waiting = dict(wanted)
    delays: dict[str, float] = dict.fromkeys(wanted, -1.0)
    torn: dict[str, int] = {}
    errors: dict[str, str] = {}
    while waiting:
        for key, expected in list(waiting.items()):
            writer, _, case = key.partition("/")
            state = _view(folders[writer], case, expected)
            if state == "fresh":
                delays[key] = round(time.monotonic() - began, 3)
                del waiting[key]
            elif state == "torn":
                torn[key] = torn.get(key, 0) + 1
            elif state not in ("old", "ENOENT"):
                errors[key] = state
        spent = time.monotonic() - began
        if spent > limit_s:
            break
        time.sleep(_SOON_S if spent < 1 else _LATER_S)
    owners = {writer: _owner(_file(folder, "new")) for writer, folder in folders.items()}
    return Seen(delays, torn, errors, owners)


def _file(folder: str, case: str) -> str:
    return os.path.join(folder, "views", case, "file")


def _view(folder: str, case: str, expected: str) -> str:
    """``fresh``, ``old``, ``torn``, or the name of an error."""
    try:
        if case == "listed":
            there = os.listdir(os.path.join(folder, "views", "listed"))
            return "fresh" if "file" in there else "old"
        if case == "announced":  # which has a client of NFS ask its server (close-to-open)
            os.close(os.open(os.path.dirname(_file(folder, case)), os.O_RDONLY | os.O_DIRECTORY))
        content = get(_file(folder, case))
    except OSError as error:
        return code_of(error)
    if digest(content) == expected:
        return "fresh"
    return "old" if case == "replaced" and len(content) == _BYTES else "torn"


def _owner(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError as error:
        return code_of(error)
    return f"{found.st_uid}:{found.st_gid}"
