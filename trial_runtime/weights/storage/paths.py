"""Paths of weights: their one canonical spelling, and the check that they stay inside a root.

Tuners choose ``save_path`` and ``restore_path``; agents and the tuner host turn them into
the canonical path below the weights root with :func:`resolve_in_root`, so that two
spellings of one place are one claim. Nothing here writes, and nothing needs to exist yet.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from trial_runtime.errors import CorruptWeights, PathOutsideRoot, PathThroughLink, WeightsError
from trial_runtime.weights.storage import confined

#: Longest name of a file or folder, in bytes, on every file system in use.
NAME_MAX = 255

#: The folder below the weights root where checkpoints of trials lie; nobody's save path.
CHECKPOINTS_NAME = ".checkpoints"

#: The folder below the weights root by which hosts know that they have the same share.
SHARE_NAME = ".bequeath"

#: The folder below the weights root where versions of shared stores lie.
STORES_NAME = ".stores"

_RESERVED = {
    STORES_NAME: "is where shared stores keep their versions",
    CHECKPOINTS_NAME: "is where attempts of trials keep their checkpoints",
    SHARE_NAME: "is where hosts look whether they have the same share",
}


def resolve_in_root(root: str, candidate: str, *, read_roots: Iterable[str] = ()) -> str:
    """The canonical path of weights.

    Args:
        root: the weights root; need not exist yet.
        candidate: absolute, or relative to ``root``.
        read_roots: further folders that may be read from. Give them for a
            ``restore_path``, never for a ``save_path``.

    Returns:
        Relative to ``root`` with ``/`` between parts when it lies below it; absolute when
        it lies in one of ``read_roots``. Links inside a root are followed, so equal places
        give equal strings.

    Raises:
        PathOutsideRoot: it lies in none of them, or is ``root`` itself.
        PathThroughLink: it is spelled as lying below a root, but a symbolic link leads out.
    """
    _check_spelling(candidate)
    real_root = os.path.realpath(root)
    joined = os.path.join(root, candidate)
    real = os.path.realpath(joined)
    if os.path.islink(real):  # realpath gives up on loops and leaves the link in place
        raise PathThroughLink("the symbolic links on this path go in circles", where=candidate)
    inside = _inside(real_root, real, candidate)
    if inside is not None:
        return inside
    reads = tuple(read_roots)
    for other in reads:
        if relative_to(os.path.realpath(other), real) is not None:
            return real
    for spelled_root in (root, real_root, *reads):
        if relative_to(os.path.abspath(spelled_root), os.path.abspath(joined)) is not None:
            raise PathThroughLink(
                f"a symbolic link on this path leads out of {spelled_root}, to {real}",
                hint="save and read below the weights root itself, not through a link",
                where=candidate,
            )
    raise _nowhere(root, candidate)


def spelled_in_root(root: str, candidate: str, *, read_roots: Iterable[str] = ()) -> str:
    """Do what :func:`resolve_in_root` does by the spelling alone: asks no file system, and follows
    no links. For callers that may not wait for a server; resolve its result before use.

    Args:
        root: the weights root.
        candidate: absolute, or relative to ``root``.
        read_roots: further folders that may be read from.

    Raises:
        PathOutsideRoot: by its spelling it lies in none of them, or is ``root`` itself.
    """
    _check_spelling(candidate)
    plain = os.path.normpath(os.path.join(root, candidate))
    inside = _inside(os.path.normpath(root), plain, candidate)
    if inside is not None:
        return inside
    if any(relative_to(os.path.normpath(other), plain) is not None for other in read_roots):
        return plain
    raise _nowhere(root, candidate)


def _inside(root: str, path: str, candidate: str) -> str | None:
    """``path`` as seen from ``root``, None if outside; nobody may claim the root or our folders."""
    inside = relative_to(root, path)
    if inside == ".":
        raise PathOutsideRoot(
            "is the weights root itself", hint="choose a folder below it", where=candidate
        )
    if inside is not None and (first := inside.partition("/")[0]) in _RESERVED:
        raise PathOutsideRoot(
            f"{first} {_RESERVED[first]}", hint="choose another name", where=candidate
        )
    return inside


def _nowhere(root: str, candidate: str) -> PathOutsideRoot:
    return PathOutsideRoot(
        f"does not lie below the weights root {root}",
        hint="choose a path below the weights root; weights that are only read may lie in a "
        "folder declared in weightsReadRoots",
        where=candidate,
    )


def _check_spelling(candidate: str) -> None:
    if not candidate or "\0" in candidate:
        raise PathOutsideRoot("is not a path", where=repr(candidate))
    longest = max(len(os.fsencode(part)) for part in candidate.split("/"))
    if longest > NAME_MAX:
        raise PathOutsideRoot(
            f"has a name of {longest:,} bytes in it; file systems take {NAME_MAX}",
            where=f"{candidate[:60]}...",
        )


def relative_to(root: str, path: str) -> str | None:
    """``path`` as seen from ``root`` ('.' for the root itself), None if outside.

    Compares text only: both are normalised before.
    """
    if path == root:
        return "."
    prefix = root if root.endswith("/") else f"{root}/"
    return path[len(prefix) :] if path.startswith(prefix) else None


def as_declared(path: str, read_roots: Iterable[str]) -> str:
    """A result of :func:`resolve_in_root`, spelled below its read root as that is declared.

    The root may be a link on this host; other hosts know it by its declared name only.
    """
    if os.path.isabs(path):
        for root in read_roots:
            below = relative_to(os.path.realpath(root), path)
            if below is not None:
                return os.path.normpath(os.path.join(root, below))
    return path


def nested(one: str, other: str) -> bool:
    """Whether two canonical paths claim the same place, or one contains the other."""
    return relative_to(one, other) is not None or relative_to(other, one) is not None


def holding_root(path: str, roots: Iterable[str]) -> str | None:
    """The real path of the first of ``roots`` that holds ``path``, or None."""
    real = os.path.realpath(path)
    for root in roots:
        real_root = os.path.realpath(root)
        if relative_to(real_root, real) is not None:
            return real_root
    return None


def resolve_reference(folder: str, reference: str, root: str, *, writer: str = "") -> str:
    """The real path of a data file that a manifest in ``folder`` refers to.

    Args:
        folder: of the manifest.
        reference: relative to ``folder``.
        root: the folder that it may not lead out of.
        writer: the trial and attempt that wrote the manifest, for the error.

    Raises:
        CorruptWeights: the reference leads out of ``root``: no writer of ours made it.
    """
    real = os.path.realpath(os.path.join(folder, reference))
    if relative_to(os.path.realpath(root), real) in (None, "."):
        raise CorruptWeights(
            f"refers to {reference!r}, which lies outside the weights root {root}",
            where=folder,
            writer=writer,
        )
    return real


def open_regular(path: str) -> tuple[int, int]:
    """Open a file at a canonical path for reading; its descriptor and size in bytes.

    No part of the path may be a link by now, and nothing but a regular file is read: a FIFO
    would block for ever, a device could have effects.

    Raises:
        FileNotFoundError: there is none.
        PathThroughLink: it is a symbolic link, or one is on the way.
        WeightsError: it is no regular file.
    """
    above, name = os.path.split(path)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with confined.folder(above) as at:
        try:
            fd = os.open(name, flags, dir_fd=at)
        except OSError:
            if os.path.islink(path):
                raise PathThroughLink("is a symbolic link, not a file", where=path) from None
            raise
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise WeightsError("is not a regular file", where=path)
    return fd, status.st_size


@contextmanager
def regular_file(path: str) -> Iterator[tuple[int, int]]:
    """Do what :func:`open_regular` does, and close the file in the end."""
    fd, size = open_regular(path)
    try:
        yield fd, size
    finally:
        os.close(fd)
