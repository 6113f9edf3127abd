"""Data files: the safetensors format, written with room for a header that comes last.

A file is ``<8 bytes: header length><header: JSON><tensors, back to back>``. Ours reserve
the room that the header takes at most, so that tensors can be written while it is still
being found out which of them need to be; what is left of the room is filled with spaces,
as the format allows.
"""

from __future__ import annotations

import os
import re
import secrets
import struct
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from trial_runtime.errors import CorruptWeights
from trial_runtime.weights.format.dtypes import DTYPES
from trial_runtime.weights.format.manifest import TensorEntry, entry_fault
from trial_runtime.weights.storage.paths import regular_file

# Names that `new_name` makes; readers know our files by them.
OWN_NAME: Final = re.compile(r"weights-[0-9a-f]{16}\.safetensors")
# The limit of the format's own implementation; checked before anything is allocated.
MAX_HEADER_BYTES: Final = 100_000_000
# The limit of a header that is read, since no manifest describes its file: some 150,000 tensors.
# Decoded, it takes up to twenty times as much memory.
MAX_READ_HEADER_BYTES: Final = 16 * 1024 * 1024
_LENGTH: Final = struct.Struct("<Q")
# Tensors begin at a cache line, whatever their element type.
_ALIGNMENT: Final = 64


def new_name() -> str:
    """A name that no data file has: they are never overwritten, so no cache can be stale."""
    return f"weights-{secrets.token_hex(8)}.safetensors"


def data_start(
    tensors: Sequence[tuple[str, str, tuple[int, ...], int]], metadata: dict[str, str]
) -> int:
    """The first offset at which tensors may begin if the header describes these or some of them.

    Args:
        tensors: name, element type, shape, bytes.
        metadata: as for :func:`header`.
    """
    # No offset is larger than the sum: described at it, each tensor takes the most room.
    most = sum(nbytes for _, _, _, nbytes in tensors)
    text = _text([(*tensor[:3], most, 0) for tensor in tensors], 0, metadata)
    return -(-(_LENGTH.size + len(text)) // _ALIGNMENT) * _ALIGNMENT


def header(
    tensors: Sequence[tuple[str, str, tuple[int, ...], int, int]],
    start: int,
    metadata: dict[str, str],
) -> bytes:
    """The first ``start`` bytes of a data file.

    Args:
        tensors: name, element type, shape, offset in the file, bytes; back to back from
            ``start`` on.
        start: where the first tensor begins.
        metadata: free text for readers of the format.
    """
    text = _text(tensors, start, metadata)
    room = start - _LENGTH.size
    assert len(text) <= room, "the reserved room is an upper bound"
    return _LENGTH.pack(room) + text.ljust(room)


def _text(
    tensors: Sequence[tuple[str, str, tuple[int, ...], int, int]],
    start: int,
    metadata: dict[str, str],
) -> bytes:
    described: dict[str, Any] = {"__metadata__": metadata}
    for name, dtype, shape, offset, nbytes in tensors:
        spec = DTYPES[dtype]
        described[name] = {
            "dtype": spec.header,
            "shape": [*shape, spec.trailing] if spec.trailing else list(shape),
            "data_offsets": [offset - start, offset - start + nbytes],
        }
    return msgspec.json.encode(described)


def header_length(fd: int, size: int, where: str, writer: str = "") -> int:
    """The offset at which the tensors of an open data file begin, by its own account.

    Args:
        fd: a descriptor of the file.
        size: of the file, in bytes.
        where: its path, for the error.
        writer: the trial and attempt that wrote it, for the error.

    Raises:
        CorruptWeights: the header would not fit into the file, or exceeds the format's limit.
    """
    return _tensors_begin(os.pread(fd, _LENGTH.size, 0), size, where, writer)


def _tensors_begin(prefix: bytes, size: int, where: str, writer: str = "") -> int:
    if len(prefix) < _LENGTH.size:
        raise CorruptWeights(
            f"is cut short: holds {size} bytes, not even a header", where=where, writer=writer
        )
    (length,) = _LENGTH.unpack(prefix)
    if length > MAX_HEADER_BYTES or _LENGTH.size + length > size:
        raise CorruptWeights(
            f"claims a header of {length:,} bytes in a file of {size:,} bytes"
            + (f" (at most {MAX_HEADER_BYTES:,} are allowed)" if length <= size else ""),
            where=where,
            writer=writer,
        )
    return int(_LENGTH.size + length)


class _Described(msgspec.Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


class _Metadata(msgspec.Struct, frozen=True):
    """The part of a header that is about the file itself."""

    metadata: dict[str, str] = msgspec.field(name="__metadata__", default_factory=dict)


def read_entries(path: str) -> tuple[dict[str, TensorEntry], int, int]:
    """The tensors of any safetensors file, its size in bytes and where its tensors begin.

    For files that came without a manifest (pretrained weights, an export): here the header
    has to be read, so each of its numbers is checked. Entries carry no digest.

    Raises:
        CorruptWeights: it is no safetensors file, cut short, or claims more than it holds.
    """
    raw, size, start = _header_of(path)
    return _described(raw, path, size, start), size, start


def _header_of(path: str) -> tuple[bytes, int, int]:
    """The header of a file as text, the file's size and where its tensors begin."""
    with regular_file(path) as (fd, size):
        start = _readable(header_length(fd, size, path), path)
        return os.pread(fd, start - _LENGTH.size, _LENGTH.size), size, start


def writer_of(path: str) -> str:
    """The writer of a data file, by its own account; empty where it names none.

    Raises:
        CorruptWeights: it is no safetensors file, cut short, or claims more than it holds.
    """
    raw, _, _ = _header_of(path)
    try:
        return msgspec.json.decode(raw, type=_Metadata).metadata.get("writer", "")
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as fault:
        raise CorruptWeights(f"its header cannot be read: {fault}", where=path) from None


def entries_of(data: Any, path: str) -> tuple[dict[str, TensorEntry], int, int]:
    """Do what :func:`read_entries` does, for a file that is in memory already."""
    size = len(data)
    start = _readable(_tensors_begin(bytes(data[: _LENGTH.size]), size, path), path)
    return _described(bytes(data[_LENGTH.size : start]), path, size, start), size, start


def _readable(start: int, path: str) -> int:
    if start - _LENGTH.size > MAX_READ_HEADER_BYTES:
        raise CorruptWeights(
            f"has a header of {start - _LENGTH.size:,} bytes (at most {MAX_READ_HEADER_BYTES:,} "
            "are read)",
            where=path,
        )
    return start


def _described(raw: bytes, path: str, size: int, start: int) -> dict[str, TensorEntry]:
    try:
        described = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        described.pop("__metadata__", None)
        tensors = {
            name: msgspec.json.decode(text, type=_Described) for name, text in described.items()
        }
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as fault:
        raise CorruptWeights(f"its header cannot be read: {fault}", where=path) from None
    file = os.path.basename(path)
    entries = {}
    for name, tensor in tensors.items():
        begin, end = tensor.data_offsets
        entry = TensorEntry(file, start + begin, end - begin, tensor.dtype, tensor.shape, "")
        wrong = "begins before the tensors do" if begin < 0 else entry_fault(entry, size)
        if wrong:
            raise CorruptWeights(f"tensor {name!r}: {wrong}", where=path)
        entries[name] = entry
    return entries


def looks_like_safetensors(path: str) -> bool:
    """Whether a file begins like one: a length, then an opening brace."""
    with regular_file(path) as (fd, _):
        return begins_like_safetensors(os.pread(fd, _LENGTH.size + 1, 0))


def begins_like_safetensors(begin: bytes) -> bool:
    """Whether the first nine bytes of a file are a length and an opening brace."""
    return len(begin) == _LENGTH.size + 1 and begin[-1:] == b"{"
