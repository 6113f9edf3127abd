"""The origin of each tensor of a trial's weights, as manifests say it.

A manifest names each tensor with its type, its shape, the digest of its bytes, and the file that
holds them, which may be an ancestor's. So two manifests tell what was kept, and a line of them how
long ago it was written. What was removed, or was never a manifest, is not guessed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dispatcher import queries
from dispatcher.experiments.tensor_origins import TensorChange, TensorOrigin
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.queries.records import Record
from trial_runtime.errors import CorruptWeights, TrialRuntimeError
from trial_runtime.weights.format import hashing
from trial_runtime.weights.format.manifest import (
    MANIFEST_NAME,
    Manifest,
    TensorEntry,
    decode,
)
from trial_runtime.weights.read.opening import manifest_bytes
from trial_runtime.weights.storage.roots import locate_to_read

if TYPE_CHECKING:
    from dispatcher.experiment import ExperimentConfig

#: Ancestors whose manifests are read for one answer, and bytes of them.
MOST_ANCESTORS: Final = 256
MOST_BYTES: Final = 64 << 20

#: Groups of tensors in one answer; with more, names are cut shorter.
MOST_GROUPS: Final = 60

#: Names of tensors that a child has no more.
MOST_GONE: Final = 200


@dataclass(frozen=True, slots=True)
class TensorOrigins(Record):
    """All tensors of a trial's weights, and names that only the parent has. With ``why`` there are
    none, for that reason."""

    trial: int
    parent: int | None
    why: str = ""
    tensors: tuple[TensorOrigin, ...] = ()
    gone: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class _Ancestor:
    trial: int
    generations: int
    manifest: Manifest


@dataclass
class _Rows:
    """Trials and their weights, as the store has them."""

    parents: dict[int, int | None] = field(default_factory=dict)
    paths: dict[int, str] = field(default_factory=dict)
    digests: dict[int, str] = field(default_factory=dict)
    by_path: dict[str, int] = field(default_factory=dict)
    by_digest: dict[str, int] = field(default_factory=dict)

    def digest_of(self, path: str) -> str:
        """Return the digest of the weights at a save path."""
        return self.digests[self.by_path[path]]


class TensorReader:
    """Reads manifests of one experiment, each once. Blocks on the disk, or on a remote store."""

    def __init__(self, read: Callable[[str], bytes | None], rows: _Rows) -> None:
        self._read = read
        self._rows = rows
        self._known: dict[int, Manifest] = {}
        self._bytes = 0

    def origins(self, trial: int) -> TensorOrigins:
        """Say of each tensor of a trial where it came from.

        Raises:
            CorruptWeights, StorageError: the manifest of the trial itself cannot be read.
        """
        manifest = self._manifest(trial)
        parent = self._parent_of(trial, manifest)
        line, notes = self._line(parent)
        above = line[0].manifest if line else None
        if parent is not None and not manifest.parent and above is not None:
            notes.append(
                "It was saved in full, without parent=: what equals the parent's was compared by "
                "digest, and lies in both."
            )
        seen: set[tuple[str, int, int]] = set()
        names = _NamesByBytes(above)
        group_of = _groups(manifest)
        found = []
        for name, entry in manifest.tensors.items():
            place = (entry.file, entry.offset, entry.nbytes)
            change, was = _changed(name, entry, above, names, inherited="/" in entry.file)
            origin, generations = self._origin(trial, name, entry, change, was, line)
            stored = self._stored(trial, entry)
            if origin == trial and stored is not None and stored != trial:
                origin, generations = stored, None  # the line of manifests does not reach it
            earlier = None if above is None else above.tensors.get(was or name)
            found.append(
                TensorOrigin(
                    name=name,
                    group=group_of[name],
                    change=change,
                    dtype=entry.dtype,
                    shape=tuple(entry.shape),
                    bytes=0 if place in seen else entry.nbytes,
                    origin=origin,
                    generations=generations,
                    stored=stored,
                    before=_before(entry, earlier),
                    was=was,
                )
            )
            seen.add(place)
        gone = () if above is None else tuple(n for n in above.tensors if n not in manifest.tensors)
        moved = {one.was for one in found if one.was}
        gone = tuple(name for name in gone if name not in moved)
        return TensorOrigins(trial, parent, "", tuple(found), gone[:MOST_GONE], tuple(notes))

    def _parent_of(self, trial: int, manifest: Manifest) -> int | None:
        """Return the trial whose weights the manifest names; else the one that the store names."""
        named = self._rows.by_digest.get(manifest.parent) if manifest.parent else None
        return self._rows.parents.get(trial) if named is None else named

    def _line(self, parent: int | None) -> tuple[list[_Ancestor], list[str]]:
        """Return ancestors with their manifests, the nearest first, up to one that cannot be had;
        and sentences on that one."""
        line: list[_Ancestor] = []
        seen: set[int] = set()
        while parent is not None and parent not in seen:
            seen.add(parent)
            if parent not in self._rows.paths:
                return line, [f"Trial {parent} has no weights with a manifest."]
            if len(line) >= MOST_ANCESTORS or self._bytes > MOST_BYTES:
                return line, [f"The line was read up to trial {parent}: it goes on above."]
            try:
                manifest = self._manifest(parent)
            except (TrialRuntimeError, OSError):
                return line, [f"The manifest of trial {parent} is not there (any more)."]
            line.append(_Ancestor(parent, len(line) + 1, manifest))
            parent = self._parent_of(parent, manifest)
        return line, []

    def _origin(
        self,
        trial: int,
        name: str,
        entry: TensorEntry,
        change: TensorChange,
        was: str,
        line: list[_Ancestor],
    ) -> tuple[int | None, int | None]:
        """Return the trial that wrote these bytes first, and the generations since."""
        if change is not TensorChange.UNCHANGED:
            return trial, 0
        origin, generations, called = trial, 0, was or name
        for ancestor in line:
            there = ancestor.manifest.tensors.get(called)
            if there is None or not _equal(there, entry):
                break
            origin, generations = ancestor.trial, ancestor.generations
        return origin, generations

    def _stored(self, trial: int, entry: TensorEntry) -> int | None:
        """Return the trial in whose folder the bytes lie; None where it is not known."""
        if "/" not in entry.file:
            return trial
        path = posixpath.normpath(posixpath.join(self._rows.paths[trial], entry.file))
        while path:
            path = posixpath.dirname(path)
            if path in self._rows.by_path:
                return self._rows.by_path[path]
            if path == "/":
                break
        return None

    def _manifest(self, trial: int) -> Manifest:
        if trial not in self._known:
            path = self._rows.paths[trial]
            raw = self._read(path)
            where = f"{path}/{MANIFEST_NAME}"
            if raw is None:
                raise CorruptWeights("is not there", where=where)
            if hashing.digest(raw) != self._rows.digests[trial]:
                raise CorruptWeights("is not the manifest that was committed", where=where)
            self._bytes += len(raw)
            self._known[trial] = decode(raw, where)
        return self._known[trial]


class _NamesByBytes:
    """Names of a manifest's tensors by their bytes, for tensors that were renamed."""

    def __init__(self, manifest: Manifest | None) -> None:
        self._names: dict[tuple[str, int, str], str] = {}
        for name, entry in {} if manifest is None else manifest.tensors.items():
            if entry.nbytes:
                self._names.setdefault((entry.dtype, entry.nbytes, entry.blake3), name)

    def of(self, entry: TensorEntry) -> str:
        """Return the name of the tensor with these bytes, or ''."""
        return self._names.get((entry.dtype, entry.nbytes, entry.blake3), "")


def _equal(one: TensorEntry, other: TensorEntry) -> bool:
    return (one.dtype, tuple(one.shape), one.blake3) == (
        other.dtype,
        tuple(other.shape),
        other.blake3,
    )


def _changed(
    name: str,
    entry: TensorEntry,
    above: Manifest | None,
    names: _NamesByBytes,
    *,
    inherited: bool,
) -> tuple[TensorChange, str]:
    """Return what became of a tensor, and its name in the parent if it had another."""
    if above is None:
        return (TensorChange.UNCHANGED if inherited else TensorChange.WRITTEN), ""
    there = above.tensors.get(name)
    if there is not None and _equal(there, entry):
        return TensorChange.UNCHANGED, ""
    was = names.of(entry)
    if was and tuple(above.tensors[was].shape) == tuple(entry.shape):
        return TensorChange.UNCHANGED, was
    if there is None:
        return TensorChange.NEW, ""
    same = tuple(there.shape) == tuple(entry.shape)
    return (TensorChange.CHANGED if same else TensorChange.RESIZED), ""


def _before(entry: TensorEntry, earlier: TensorEntry | None) -> str:
    if earlier is None:
        return ""
    if (earlier.dtype, tuple(earlier.shape)) == (entry.dtype, tuple(entry.shape)):
        return ""
    return f"{earlier.dtype} {'×'.join(map(str, earlier.shape)) or 'scalar'}"


def _groups(manifest: Manifest) -> dict[str, str]:
    """Return the group of each tensor: its name without the last part, or fewer of its parts where
    that makes too many groups."""
    parts = {name: name.split(".")[:-1] for name in manifest.tensors}
    deepest = max((len(one) for one in parts.values()), default=0)
    for depth in range(deepest, 0, -1):
        groups = {name: ".".join(one[:depth]) for name, one in parts.items()}
        if len(set(groups.values())) <= MOST_GROUPS:
            return groups
    return dict.fromkeys(manifest.tensors, "")


@contextmanager
def tensor_reader(place: ExperimentFolder, config: ExperimentConfig) -> Iterator[TensorReader]:
    """Open the manifests of an experiment.

    Raises:
        UserError: they lie in the memory of another process.
    """
    from dispatcher.wiring.remote_roots import remote_manifests, remote_root
    from dispatcher.wiring.weights import weights_root

    with queries.ExperimentReader.open(place.path) as reader:
        rows = _rows(reader)
    if remote_root(config, place.id) is not None:
        with remote_manifests(config, place) as read_object:
            yield TensorReader(lambda path: read_object(path, rows.digest_of(path)), rows)
        return
    root = str(weights_root(config, place))
    read_roots = tuple(str(path) for path in config.weights_read_roots)

    def read(path: str) -> bytes | None:
        return manifest_bytes(locate_to_read(path, root, read_roots).path)

    yield TensorReader(read, rows)


def _rows(reader: queries.ExperimentReader) -> _Rows:
    """Read what there is of weights with a manifest."""
    rows = _Rows()
    for row in reader.rows(
        "SELECT id, parent, save_path, weights_digest, weights_kind FROM trials"
    ):
        rows.parents[row["id"]] = row["parent"]
        if not row["save_path"] or not row["weights_digest"] or row["weights_kind"] != "bequeath":
            continue
        rows.paths[row["id"]] = row["save_path"]
        rows.digests[row["id"]] = row["weights_digest"]
        rows.by_path[row["save_path"]] = row["id"]
        rows.by_digest.setdefault(row["weights_digest"], row["id"])
    return rows
