"""Meaning of an error of the system on a share, and what to do about it."""

from __future__ import annotations

from nfs_setup.verify.facts import Failure

_MEANINGS: dict[str, tuple[str, str]] = {
    "EROFS": (
        "it is read-only here",
        "mount it 'rw'; if it is, let the server export it 'rw' to this machine (exportfs -v)",
    ),
    "EACCES": (
        "this user may not do that",
        "give the folder to the user or group of the trials (on a share of ours: bequeath nfs "
        "server DIR … --owner USER --group GROUP), or name a folder of theirs below it; root of "
        "a client is nobody there (root_squash)",
    ),
    "ENOSPC": ("it is full", "make room, or let retention delete more weights"),
    "EDQUOT": ("the quota is used up", "ask for more, or let retention delete more weights"),
    "ESTALE": (
        "the server does not know this folder any more",
        "mount it again: it was exported anew, or the folder behind it was replaced",
    ),
    "EIO": ("input or output failed", "see the kernel's log (dmesg) here and on the server"),
    "ENOENT": (
        "what another machine made does not show here",
        "look whether both mount the same folder of the same server",
    ),
    "ENOLCK": ("there is nobody to ask for locks", "NFSv4 needs no lock service; 3 needs statd"),
    "ETIMEDOUT": ("the server did not answer", "mount it 'hard', and see the network"),
    "HANGS": (
        "no answer came in time",
        "see whether the server is up, reachable and serving: programs wait for it",
    ),
    "LOST": (
        "this machine cannot be asked",
        "see whether one can log in there, and whether it has Python 3.9 or later (--python)",
    ),
}
_MEANINGS["EPERM"] = _MEANINGS["EACCES"]
_MEANINGS["EREMOTEIO"] = _MEANINGS["EIO"]


def failed(failure: Failure) -> tuple[str, str]:
    """The text of a finding, and what to change."""
    meaning, change = _MEANINGS.get(failure.code, ("the system refuses it", ""))
    text = failure.text if failure.code in ("HANGS", "LOST", "REFUSED") else failure.code
    return f"{meaning} ({failure.doing}: {text})", change
