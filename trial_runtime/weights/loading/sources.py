"""Sources of a load: published weights, a bare safetensors file, a plain torch.save."""

from __future__ import annotations

import functools
import importlib.util
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from trial_runtime.errors import CorruptWeights, WeightsError, WeightsNotFound
from trial_runtime.weights.format import datafile, dtypes, staging
from trial_runtime.weights.format.datafile import OWN_NAME
from trial_runtime.weights.format.manifest import (
    FORMAT,
    MANIFEST_NAME,
    VERSION,
    Manifest,
    TensorEntry,
)
from trial_runtime.weights.format.skeleton import (
    flatten,
    is_numpy_array,
    rebuild,
    references,
    subtree,
)
from trial_runtime.weights.loading import torch_file
from trial_runtime.weights.loading.matching import Form
from trial_runtime.weights.read.held import Held, HeldFiles, hold
from trial_runtime.weights.read.mapped import MappedFiles, tensor_files
from trial_runtime.weights.read.opening import OpenedManifest, open_manifest
from trial_runtime.weights.read.plain import digest_tree, hold_verified
from trial_runtime.weights.read.tensor_files import TensorFiles
from trial_runtime.weights.storage import faults
from trial_runtime.weights.storage.patience import Patience
from trial_runtime.weights.storage.roots import CACHE_VARIABLE, Located

Framework = Literal["torch", "numpy"]


class Source(ABC):
    """Stored tensors by name; nothing of them is read before it is asked for."""

    def __init__(self, where: str, digest: str, skeleton: Any, forms: Mapping[str, Form]) -> None:
        self.where = where
        self.digest = digest
        self.forms = forms
        self._skeleton = skeleton

    @abstractmethod
    def prepare(self, names: Iterable[str], verify: bool) -> int:
        """Read ahead and check these tensors; returns how many bytes they take.

        Raises:
            CorruptWeights: one is not what was published.
        """

    @abstractmethod
    def view(self, name: str) -> memoryview | None:
        """The bytes of a tensor in C order, or None if only :meth:`tensor` can give it."""

    @abstractmethod
    def tensor(self, name: str, framework: str | None) -> Any:
        """A tensor; tied names give the same object."""

    def names(self, key: str) -> list[str]:
        """The tensors of the part of the state at ``key``."""
        return list(references(subtree(self._skeleton, key, self.where)))

    def state(self, key: str, framework: str | None) -> Any:
        """The nested state, or the part of it at ``key``."""
        node = subtree(self._skeleton, key, self.where)
        return rebuild(node, lambda name: self.tensor(name, framework), self.where)


@functools.cache
def _has_torch() -> bool:
    return importlib.util.find_spec("torch") is not None


class PublishedSource(Source):
    """Weights with a manifest (one made up from the header, for a bare safetensors file)."""

    def __init__(self, opened: OpenedManifest, held: Held | None = None) -> None:
        self._manifest = opened.manifest
        forms = {name: Form(e.dtype, e.shape) for name, e in self._manifest.tensors.items()}
        super().__init__(opened.folder, opened.digest, self._manifest.state, forms)
        self._originals = tensor_files(opened) if held is None else HeldFiles(opened, held)
        self._files: TensorFiles = self._originals
        if held is None:
            self._files = _through_cache(opened, self._originals)
        self._made: dict[tuple[str, str], Any] = {}
        self._owners: dict[tuple[str, int], str] = {}
        self._first = {name: group[0] for group in self._manifest.ties for name in group}

    def prepare(self, names: Iterable[str], verify: bool) -> int:
        entries = {name: self._entry(name) for name in names}
        if not verify:
            # A copy is as good as the digests it is compared with; not to compare them is to
            # trust the disk that holds the original.
            self._files = self._originals
        self._files.prepare(entries.values())
        if verify:
            self._files.verify(entries)
        return sum({(e.file, e.offset, e.nbytes): e.nbytes for e in entries.values()}.values())

    def view(self, name: str) -> memoryview | None:
        return self._files.view(self._manifest.tensors[name])

    def tensor(self, name: str, framework: str | None) -> Any:
        entry = self._entry(name)
        like = framework or (entry.like if _has_torch() else "numpy")
        first = self._first.get(name, name)
        made = (first, like)
        if made not in self._made:
            tensor = self._files.tensor(name, entry, like)
            # Equal tensors that were inherited may lie in one place without being tied: training
            # one must not change the other.
            place = (entry.file, entry.offset)
            if entry.nbytes and self._owners.setdefault(place, first) != first:
                tensor = tensor.clone() if like == "torch" else tensor.copy()
            self._made[made] = tensor
        return self._made[made]

    def _entry(self, name: str) -> TensorEntry:
        entry = self._manifest.tensors.get(name)
        if entry is None:
            raise CorruptWeights(
                f"the state refers to tensor {name!r}, which is not stored",
                where=self.where,
                writer=self._manifest.writer,
            )
        return entry


def _through_cache(opened: OpenedManifest, originals: TensorFiles) -> TensorFiles:
    setting = os.environ.get(CACHE_VARIABLE, "auto")
    if setting.startswith("auto") and isinstance(originals, MappedFiles):
        return originals  # a disk of this machine: a trial there pays for no import either
    from trial_runtime.weights.cache.files import CachedFiles
    from trial_runtime.weights.cache.place import cache_for

    cache = cache_for(opened.folder)
    return originals if cache is None else CachedFiles(opened, originals, cache)


class PickledSource(Source):
    """A file of ``torch.save``: read as a whole, and only what weights consist of."""

    def __init__(self, held: Held, digest: str) -> None:
        self._nbytes = held.nbytes
        skeleton, self._tensors = flatten(torch_file.load(held))
        forms = {
            name: Form(staging.dtype_of(name, tensor), tuple(tensor.shape))
            for name, tensor in self._tensors.items()
        }
        super().__init__(held.path, digest, skeleton, forms)

    def prepare(self, names: Iterable[str], verify: bool) -> int:
        return self._nbytes  # torch has read it all, whatever was asked for

    def view(self, name: str) -> memoryview | None:
        return None

    def tensor(self, name: str, framework: str | None) -> Any:
        tensor = self._tensors[name]
        if framework != "numpy" or is_numpy_array(tensor):
            return tensor
        dtypes.to_numpy(self.forms[name].dtype, f"tensor {name!r}")  # raises if it cannot
        return tensor.numpy()


def open_source(located: Located, digest: str | None, patience: Patience) -> Source:
    """Find out what kind of weights lies at a path and open it.

    A folder with a manifest is published weights. A file, or a folder with nothing but one
    file of weights in it, was made by other tools: safetensors is mapped, anything else is
    read by torch; a digest given is then that of :func:`~.plain.digest_tree`.

    Args:
        located: the path, and the root that references may not leave.
        digest: the announced digest, hex; None: any will do.
        patience: the bound of the wait for that digest.

    Raises:
        WeightsNotFound, StaleWeights, CorruptWeights, MissingExtra: see ``load``.
    """
    file = _file_at(located.path)
    if file is None:
        if digest is not None:
            _refuse_several(located.path, digest)
        return PublishedSource(open_manifest(located, digest, patience))
    if digest is None and datafile.looks_like_safetensors(file):
        return PublishedSource(_opened_safetensors(file, datafile.read_entries(file), ""))
    held = _held(located.path, file, digest, patience)
    if datafile.begins_like_safetensors(held.memory[:9]):
        read = datafile.entries_of(held.memory, file)
        return PublishedSource(_opened_safetensors(file, read, digest or ""), held)
    return PickledSource(held, digest or "")


def _held(path: str, file: str, digest: str | None, patience: Patience) -> Held:
    """The file, by one descriptor: the bytes compared with the digest are those to be loaded."""
    if digest is not None:
        return hold_verified(path, digest, file, patience)
    return faults.persist(lambda: hold(file), file)


def _refuse_several(path: str, digest: str) -> None:
    """Raise an error that lists the files, where an announced folder of them leaves a choice."""
    if not os.path.isdir(path) or os.path.lexists(os.path.join(path, MANIFEST_NAME)):
        return
    try:
        found = digest_tree(path, sync=False)
    except (WeightsError, OSError):
        return  # perhaps it is not all there yet
    if found.digest == digest:
        raise WeightsNotFound(
            f"there are no weights here (no {MANIFEST_NAME}), but {len(found.files)} files",
            hint="load the one that is meant by its own name, or by the means that wrote them",
            where=path,
        )


_WEIGHT_SUFFIXES: Final = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")


def _file_at(path: str) -> str | None:
    """The one file of weights at a path without a manifest; None when there is none or a choice.

    A data file of ours does not count: its manifest is not there *yet*, or was lost. Nor do
    hidden files, among them what an interrupted save leaves.
    """
    if os.path.isfile(path):
        return path
    if not os.path.isdir(path) or os.path.lexists(os.path.join(path, MANIFEST_NAME)):
        return None
    files = [
        name
        for name in os.listdir(path)
        if name.endswith(_WEIGHT_SUFFIXES)
        and not name.startswith(".")
        and not OWN_NAME.fullmatch(name)
    ]
    return os.path.join(path, files[0]) if len(files) == 1 else None


def _opened_safetensors(
    path: str, read: tuple[dict[str, TensorEntry], int, int], digest: str
) -> OpenedManifest:
    entries, size, _ = read
    manifest = Manifest(
        format=FORMAT,
        version=VERSION,
        created="",
        writer="",
        parent="",
        tensors=entries,
        files={os.path.basename(path): size},
        state={name: {"$": "tensor", "v": name} for name in entries},
    )
    folder = os.path.dirname(path)
    return OpenedManifest(folder, folder, manifest, digest)
