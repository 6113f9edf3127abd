"""The experiment's place on a remote root: bytes in and out, tried again within a bound."""

from __future__ import annotations

import io
import os
import secrets
import threading
from collections.abc import Callable, Iterable
from contextlib import closing
from types import SimpleNamespace
from typing import Any, BinaryIO, Final, TypeVar, cast

from trial_runtime.errors import CorruptWeights
from trial_runtime.weights.remote import faults
from trial_runtime.weights.remote.address import OBJECT_STORES, RemoteRoot
from trial_runtime.weights.remote.faults import RemoteUnavailable
from trial_runtime.weights.remote.opening import SFTP, open_filesystem
from trial_runtime.weights.remote.record import UPLOADS
from trial_runtime.weights.remote.retrying import Persistence
from trial_runtime.weights.storage.paths import open_regular

_PIECE_BYTES: Final = 1 << 20
_BLOCK_BYTES: Final = 8 << 20  # of one request to an object store
_PART_BYTES: Final = 16 << 20  # of one upload in parts: several are in memory at once

T = TypeVar("T")


class _Mine(Exception):
    """Carries an error of the reader's own side past those of the remote one."""

    def __init__(self, error: OSError) -> None:
        self.error = error


class Place:
    """Names and bytes below ``<root>/<experiment>``. From any thread; methods block.

    A file appears under its name whole or not at all: an object store sees to that itself, on other
    file systems it is written below ``.uploads`` and renamed.

    Args:
        root: the remote root.
        owner: name of the writing process, for names of uploads: one process at a time.
        persistence: how long a failed request is tried again.
        opened: makes the connection; another one in tests.

    All methods raise :class:`RemoteUnavailable` at the bound, and
    :class:`~trial_runtime.weights.remote.faults.RemoteRefused` at once.
    """

    def __init__(
        self,
        root: RemoteRoot,
        *,
        owner: str = "head",
        persistence: Persistence = Persistence(),  # noqa: B008 - frozen
        opened: Callable[[RemoteRoot], tuple[Any, str]] = open_filesystem,
    ) -> None:
        self.root = root
        self._owner = owner
        self._persistence = persistence
        self._opened = opened
        self._whole = root.protocol in OBJECT_STORES
        # A connection by SFTP is one conversation; object stores may be asked by all at once.
        self._mine: Any = SimpleNamespace() if self._whole else threading.local()

    # -- in ----------------------------------------------------------------------------------

    def put_file(self, source: str, name: str) -> None:
        """Copy a local file, at a canonical path, to ``name``.

        Raises:
            OSError: the local file cannot be read.
            PathThroughLink, WeightsError: it is a link, or no file.
        """
        fd, nbytes = open_regular(source)
        with open(fd, "rb") as file:
            self._put(name, nbytes, lambda fs, path: self._copy_in(fs, file, path))

    def put_bytes(self, data: bytes, name: str) -> None:
        """Write ``data`` to ``name``."""

        def write(fs: Any, path: str) -> None:
            if self.root.protocol in SFTP:
                fs.upload(io.BytesIO(data), path)
            else:
                fs.pipe_file(path, data)

        self._put(name, len(data), write)

    def _copy_in(self, fs: Any, file: BinaryIO, path: str) -> None:
        file.seek(0)
        if self.root.protocol in SFTP:
            fs.upload(file, path)
        elif self.root.protocol in ("s3", "s3a"):
            fs.put_file(f"/dev/fd/{file.fileno()}", path, chunksize=_PART_BYTES)
        else:  # by the descriptor: the name may have become a link since it was opened
            fs.put_file(f"/dev/fd/{file.fileno()}", path)

    def _put(self, name: str, nbytes: int, write: Callable[[Any, str], None]) -> None:
        draft = name if self._whole else f"{UPLOADS}/{self._owner}-{secrets.token_hex(8)}"

        def once(fs: Any, base: str) -> None:
            if not self._whole:
                self._make_folder(fs, f"{base}/{UPLOADS}")
            write(fs, f"{base}/{draft}")
            fs.invalidate_cache()
            written = fs.info(f"{base}/{draft}")["size"]
            if written != nbytes:
                raise RemoteUnavailable(
                    f"took {written:,} bytes of {nbytes:,}", where=f"{self.root.shown}/{name}"
                )
            if draft != name:
                self._make_folder(fs, os.path.dirname(f"{base}/{name}"))
                fs.mv(f"{base}/{draft}", f"{base}/{name}")

        self._do(f"writing {name}", once)

    def _make_folder(self, fs: Any, path: str) -> None:
        made: set[str] = self._mine.made
        if path not in made:
            fs.makedirs(path, exist_ok=True)
            made.add(path)

    # -- out ---------------------------------------------------------------------------------

    def size(self, name: str) -> int | None:
        """The bytes of a file; None if it is not there."""

        def once(fs: Any, base: str) -> int | None:
            fs.invalidate_cache()
            try:
                info = fs.info(f"{base}/{name}")
            except FileNotFoundError:
                return None
            return int(info["size"]) if info["type"] == "file" else None

        return self._do(f"looking for {name}", once)

    def read(self, name: str, most_bytes: int) -> bytes | None:
        """All of a small file; None if it is not there.

        Raises:
            CorruptWeights: it is larger than ``most_bytes``.
        """
        size = self.size(name)
        if size is None:
            return None
        if size > most_bytes:
            raise CorruptWeights(
                f"has {size:,} bytes ({most_bytes:,} are allowed)",
                where=f"{self.root.shown}/{name}",
            )
        out = io.BytesIO()
        self.fetch(name, out)
        return out.getvalue()

    def fetch(self, name: str, out: BinaryIO) -> None:
        """Copy a file into ``out``; goes on where it was when the connection breaks.

        Raises:
            OSError: ``out`` cannot be written to.
        """
        done = 0

        def once(fs: Any, base: str) -> None:
            nonlocal done
            with closing(self._reader(fs, f"{base}/{name}", done)) as file:
                while piece := file.read(_PIECE_BYTES):
                    try:
                        out.write(piece)
                    except OSError as error:
                        raise _Mine(error) from error
                    done += len(piece)

        self._do(f"reading {name}", once)

    def _reader(self, fs: Any, path: str, offset: int) -> BinaryIO:
        if self.root.protocol in SFTP:
            return cast("BinaryIO", fs.reader(path, offset))
        file = fs.open(path, "rb", block_size=_BLOCK_BYTES)
        file.seek(offset)
        return cast("BinaryIO", file)

    def listing(self, folder: str) -> dict[str, int]:
        """All files below a folder, with their bytes; empty if there is none."""

        def once(fs: Any, base: str) -> dict[str, int]:
            fs.invalidate_cache()
            top = f"{base}/{folder}"
            found = fs.find(top, detail=True) if self._whole else dict(_walk(fs, top))
            cut = len(str(fs._strip_protocol(base))) + 1
            return {
                path[cut:]: int(info["size"])
                for path, info in found.items()
                if info["type"] == "file"
            }

        return self._do(f"listing {folder}", once)

    # -- away --------------------------------------------------------------------------------

    def remove(self, name: str) -> None:
        """Remove a file; nothing happens if it is not there."""

        def once(fs: Any, base: str) -> None:
            try:
                fs.rm_file(f"{base}/{name}")
            except FileNotFoundError:
                pass

        self._do(f"removing {name}", once)

    def remove_folder(self, folder: str) -> None:
        """Remove a folder if it is empty; object stores have none."""

        def once(fs: Any, base: str) -> None:
            if self._whole:
                return
            try:
                self._mine.made.discard(f"{base}/{folder}")
                fs.rmdir(f"{base}/{folder}")
            except OSError:
                pass  # something is in it, or it is gone

        self._do(f"removing {folder}", once)

    def forget_uploads(self) -> None:
        """Remove uploads that an earlier process of this owner has left half written."""
        for name in self.listing(UPLOADS) if not self._whole else ():
            # The whole of the owner's name: "gpu" is not "gpu-2", which may be writing right now.
            if name.rpartition("-")[0] == f"{UPLOADS}/{self._owner}":
                self.remove(name)

    # -- inside ------------------------------------------------------------------------------

    def _do(self, what: str, work: Callable[[Any, str], T]) -> T:
        return self._persistence.get_done(f"{what} ({self.root.shown})", lambda: self._once(work))

    def _once(self, work: Callable[[Any, str], T]) -> T:
        mine = self._mine
        try:
            if getattr(mine, "fs", None) is None:
                mine.fs, mine.base = self._opened(self.root)
                mine.made = set()
            return work(mine.fs, mine.base)
        except _Mine as error:
            raise error.error from error.__cause__
        except RemoteUnavailable:
            raise
        except faults.known() as error:
            self._hang_up()
            raise faults.as_remote_error(error, self.root.shown) from error

    def _hang_up(self) -> None:
        """Drop the connection, which may be half dead; the next try makes another."""
        fs, self._mine.fs = getattr(self._mine, "fs", None), None
        if fs is not None and self.root.protocol in SFTP:
            fs.disconnect()

    def close(self) -> None:
        """Give back the connection of the calling thread."""
        self._hang_up()


def _walk(fs: Any, top: str) -> Iterable[tuple[str, dict[str, Any]]]:
    """Do what ``fs.find`` does, which takes a folder that it could not list for an empty one."""
    pending = [top]
    while pending:
        try:
            entries = fs.ls(pending.pop(), detail=True)
        except FileNotFoundError:
            continue
        for entry in entries:
            if entry["type"] == "directory":
                pending.append(entry["name"])
            else:
                yield entry["name"], entry
