"""Options of a mount, each with the reason it is there or not."""

from __future__ import annotations

import re

from nfs_setup.errors import RequestRefused
from nfs_setup.exports import flavours
from nfs_setup.mounts import READER_PATIENCE_S
from nfs_setup.request import ClientRequest

_VERSIONS = ("4", "4.0", "4.1", "4.2")

#: What each option is for, by its name; ``bequeath nfs client`` prints those that it uses.
WHY: dict[str, str] = {
    "vers": "4.2 has server-side copy and sparse files, and needs one port; said so that no "
    "older one is agreed on silently",
    "proto": "TCP, also where something in between would prefer otherwise",
    "hard": "while the server is away programs wait; 'soft' would hand them errors, and half "
    "a file",
    "sec": "how users are known to the server; 'sys' believes their numbers, 'krb5p' proves "
    "and encrypts",
    "nosuid": "no program on the share runs as somebody else than who starts it",
    "nodev": "no file on the share is a door to a device of this machine",
    "noexec": "no program on the share can be started (trial code must lie elsewhere)",
    "noatime": "reading does not write",
    "nconnect": "several connections, so that one big file does not hold up all others; the "
    "first mount from a server decides for all of them",
    "actimeo": "for how many seconds attributes may be old, and so how long a child may wait for "
    f"weights that are there; less than {READER_PATIENCE_S}",
    "_netdev": "it is mounted after the network is up",
    "nofail": "this machine boots without the server",
    "ro": "nothing here can write to the share",
}


def mount_options(request: ClientRequest) -> tuple[str, ...]:
    """The options for a request, in the order they are explained in.

    Raises:
        RequestRefused: for a value that NFS does not have, or that costs results.
    """
    if request.version not in _VERSIONS:
        raise RequestRefused(
            "is no version that is set up here",
            where=f"NFS version {request.version!r}",
            hint=f"it is one of {', '.join(_VERSIONS)}; mount NFSv3 by hand where it must be",
        )
    sec = flavours(request.sec)
    if len(sec) != 1:
        raise RequestRefused("a mount has one", where=f"sec {request.sec!r}")
    if not 1 <= request.nconnect <= 16:
        raise RequestRefused("is not between 1 and 16", where=f"nconnect {request.nconnect}")
    if request.actimeo < 0 or request.actimeo >= READER_PATIENCE_S:
        raise RequestRefused(
            f"a child could wait that long for weights of a parent that has ended; "
            f"it has to be less than {READER_PATIENCE_S} s",
            where=f"actimeo {request.actimeo}",
            hint="take 60 or less, or leave it out",
        )
    found = ["ro"] if request.read_only else []
    found += [f"vers={request.version}", "proto=tcp", "hard", f"sec={sec[0]}", "nosuid", "nodev"]
    found += [] if request.exec_allowed else ["noexec"]
    found += [] if request.atime else ["noatime"]
    found += [f"nconnect={request.nconnect}"] if request.nconnect > 1 else []
    found += [f"actimeo={request.actimeo}"] if request.actimeo else []
    return tuple(found)


def explained(options: tuple[str, ...]) -> dict[str, str]:
    """Each option with its reason."""
    return {o: WHY[re.split("[=.]", o, maxsplit=1)[0]] for o in options}
