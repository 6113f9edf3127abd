"""The weights roots of this process: set by its session, its environment, or its caller."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from trial_runtime.errors import PathOutsideRoot
from trial_runtime.weights.storage.paths import holding_root, relative_to, resolve_in_root

ROOT_VARIABLE: Final = "BEQUEATH_WEIGHTS_ROOT"
READ_ROOTS_VARIABLE: Final = "BEQUEATH_WEIGHTS_READ_ROOTS"  # separated as in PATH
CACHE_VARIABLE: Final = "BEQUEATH_WEIGHTS_CACHE"  # see cache_place.py


@dataclass(frozen=True)
class Roots:
    """The folders this process may write to (``root``) and read from (both)."""

    root: str | None = None  # None: run by hand; the folder above each path stands in
    read_roots: tuple[str, ...] = ()
    writer: str = ""  # trial and attempt, such as "17.1"


_configured: Roots | None = None


def configure(*, root: str | None, read_roots: tuple[str, ...] = (), writer: str = "") -> None:
    """Set the roots and the writer's name for this process; its session calls it once.

    Args:
        root: the weights root; None: run by hand, see :class:`Roots`.
        read_roots: further folders that may be read from.
        writer: trial and attempt, such as ``17.1``; empty when run by hand.
    """
    global _configured
    _configured = Roots(root, tuple(read_roots), writer)


def forget() -> None:
    """Go by the environment again, as before :func:`configure`."""
    global _configured
    _configured = None


def current() -> Roots:
    """The roots that :func:`configure` set, else those of the environment."""
    if _configured is not None:
        return _configured
    reads = os.environ.get(READ_ROOTS_VARIABLE, "")
    return Roots(
        os.environ.get(ROOT_VARIABLE) or None,
        tuple(part for part in reads.split(os.pathsep) if part),
    )


@dataclass(frozen=True)
class Located:
    """A path of weights and the root that its references may not leave, both real paths."""

    path: str
    root: str

    def __fspath__(self) -> str:
        """The path, which was resolved already and is not resolved once more: a link that stands
        there by then is found by the walk, and refused."""
        return self.path


def locate_to_write(path: str | os.PathLike[str], root: str | None) -> Located:
    """Resolve the path that a save writes to.

    Raises:
        PathOutsideRoot, PathThroughLink: it may not be written to.
    """
    if isinstance(path, Located):
        return path
    spelled = os.fspath(path)
    base = root or current().root
    if base is None:
        real = os.path.realpath(spelled)
        return Located(real, os.path.dirname(real))
    real_base = os.path.realpath(base)
    return Located(os.path.join(real_base, resolve_in_root(base, spelled)), real_base)


def locate_to_read(
    path: str | os.PathLike[str], root: str | None, read_roots: tuple[str, ...] | None = None
) -> Located:
    """Resolve the path that weights are read from; references stay in the root that holds it.

    Args:
        path: absolute, or relative to the root.
        root: the weights root; None: that of this process.
        read_roots: further folders that may be read from; None: those of this process.

    Raises:
        PathOutsideRoot, PathThroughLink: it may not be read from.
    """
    if isinstance(path, Located):
        return path
    spelled = os.fspath(path)
    base = root or current().root
    reads = current().read_roots if read_roots is None else tuple(read_roots)
    if base is None:
        real = os.path.realpath(spelled)
        return Located(real, holding_root(real, reads) or os.path.dirname(real))
    real_base = os.path.realpath(base)
    real = os.path.join(real_base, resolve_in_root(base, spelled, read_roots=reads))
    if relative_to(real_base, real) is not None:
        return Located(real, real_base)
    held = holding_root(real, reads)
    if held is None:  # it was there a moment ago: somebody turned it into a link
        raise PathOutsideRoot("does not lie in any declared root", where=spelled)
    # A read root may be declared as one file or folder of weights; it then is its own root.
    return Located(real, os.path.dirname(real) if held == real else held)
