"""The base of all errors that bequeath's packages raise on purpose, and the errors about weights.

Every error carries a sentence (its text), ``hint`` (what to do about it) and ``where``
(a place a person can go to: a path, a tensor), as the dispatcher's errors do.
"""

from __future__ import annotations

from typing import Any


class BequeathError(Exception):
    """An error for a person to read: the base of all that bequeath's packages raise on purpose.

    Args:
        message: a sentence.
        hint: advice what to do about it.
        where: the place of the fault: a path, a tensor.
    """

    def __init__(self, message: str, *, hint: str = "", where: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.where = where

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f"\n  {self.hint}" if self.hint else ""
        return f"{place}{self.message}{advice}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Let a pool of the user's own processes hand the error on, whatever made it.

        An exception is made again by its text alone, which few of ours can be.
        """
        return _made_again, (type(self), self.args, self.__dict__)


def _made_again(kind: type[BequeathError], args: tuple[Any, ...], held: dict[str, Any]) -> Any:
    error = kind.__new__(kind, *args)
    error.__dict__.update(held)
    return error


class TrialRuntimeError(BequeathError):
    """Base of everything the trial runtime raises on purpose."""


class WeightsError(TrialRuntimeError):
    """Base of all errors about weights; raised itself when a state cannot be stored as asked."""


class WeightsNotFound(WeightsError):
    """Raised when there are no weights at a path, and none were announced."""


class WeightsTaken(WeightsError):
    """Raised when a save would replace weights that another attempt has published."""


class WeightsMismatch(WeightsError):
    """Raised by a strict load when stored and wanted tensors do not fit one to one, and by a
    morphism whose layers do not fit the weights it is given."""


class StaleWeights(WeightsError):
    """Raised when the weights announced by their digest did not appear within the bound.

    Args:
        path: of the weights.
        expected: the digest that was announced.
        actual: the digest of the weights that are there; empty: there is no manifest.
        waited_s: the bound (seconds).
    """

    def __init__(self, path: str, *, expected: str, actual: str, waited_s: float) -> None:
        seen = f"found digest {actual}" if actual else "found no manifest"
        super().__init__(
            f"weights with digest {expected} did not appear within {waited_s:.0f} s; {seen}",
            hint="the file system shows an older state than was announced: check the mount and "
            "its acdirmax, or that nobody else writes to this path",
            where=path,
        )
        self.expected = expected
        self.actual = actual

    @property
    def found(self) -> str:
        """Name of ``actual`` in version 0.1; goes with version 0.3."""
        return self.actual


class CorruptWeights(WeightsError):
    """Raised when a file is truncated, forged or changed after it was published.

    Args:
        message: a sentence.
        where: the file, or the tensor in it.
        writer: the attempt that wrote the file, if it is known.
    """

    def __init__(self, message: str, *, where: str, writer: str = "") -> None:
        author = f" (written by {writer})" if writer else ""
        super().__init__(
            message + author,
            hint="the file was changed or cut after it was published; train that trial again, "
            "or restore the file from a copy",
            where=where,
        )
        self.writer = writer


class PathError(WeightsError):
    """Base of errors about where a path of weights leads."""


class PathOutsideRoot(PathError):
    """Raised when a path does not lie below the weights root (or a declared read root)."""


class PathThroughLink(PathError):
    """Raised when a symbolic link on the way leads out of the weights root."""


class StorageError(WeightsError):
    """Base of the errors with which a file system refuses weights; ``errno`` is the system's.

    Raised itself for a fault that outlasted the tries it is worth (a disk that reads badly).
    """

    def __init__(self, message: str, *, hint: str = "", where: str = "", errno: int = 0) -> None:
        super().__init__(message, hint=hint, where=where)
        self.errno = errno


class DiskFull(StorageError):
    """Raised when weights did not fit on the disk; nothing of them was published.

    Args:
        path: of the weights.
        needed_bytes: their size.
        reason: the system's text for the error.
        errno: the system's number for it.
    """

    def __init__(self, path: str, *, needed_bytes: int, reason: str, errno: int = 0) -> None:
        super().__init__(
            f"no space for {needed_bytes:,} bytes of weights: {reason}",
            hint=self._advice,
            where=path,
            errno=errno,
        )
        self.needed_bytes = needed_bytes

    _advice = (
        "free space below the weights root (bequeath weights gc --dry-run shows what may go), "
        "then save again; what was there before is untouched"
    )


class QuotaExceeded(DiskFull):
    """Raised when weights did not fit into a quota; nothing of them was published."""

    _advice = (
        "the disk may have room, but this user, group or project may not use more of it: have "
        "the quota raised (quota -s shows it), or remove weights (bequeath weights gc)"
    )


class StorageReadOnly(StorageError):
    """Raised when weights cannot be written since their file system is read-only."""


class StorageDenied(StorageError):
    """Raised when this user may not read or write where the weights are."""


class StorageStale(StorageError):
    """Raised when a file handle stays stale: the export was taken back, moved or made anew while
    it was mounted."""


class StorageAway(StorageError):
    """Raised when a server of weights does not answer, and the mount's options are not to wait."""


class MissingExtra(TrialRuntimeError):
    """Raised when a library is needed that is not installed; names the extra that brings it."""
