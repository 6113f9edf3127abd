"""Loading weights: checked, mapped, and copied straight to where they are wanted.

:func:`verify` reads everything once, to know that it is still what was published.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from trial_runtime.weights.loading.matching import (
    MatchReport,
    Resize,
    demand_all,
    match,
    overlap,
    selected,
    split_by_key,
)
from trial_runtime.weights.loading.sources import Framework, Source, open_source
from trial_runtime.weights.loading.targets import Target, collect
from trial_runtime.weights.read.mapped import copy_bytes, tensor_files
from trial_runtime.weights.read.opening import open_manifest
from trial_runtime.weights.storage import faults
from trial_runtime.weights.storage.patience import STALE_TIMEOUT_S, Patience
from trial_runtime.weights.storage.roots import locate_to_read


def load(
    path: str | os.PathLike[str],
    into: Any = None,
    *,
    names: str | Iterable[str] | None = None,
    key: str | None = None,
    digest: str | None = None,
    verify: bool = True,
    strict: bool = False,
    resize: Resize = "skip",
    framework: Framework | None = None,
    root: str | None = None,
    read_roots: tuple[str, ...] | None = None,
    stale_timeout_s: float = STALE_TIMEOUT_S,
) -> Any:
    """Load weights and training state.

    Only what is asked for is read, and only that is checked. Blocks on the disk, and with
    ``digest`` until the file system shows what was announced.

    Args:
        path: what was given to ``save``; or a ``.safetensors`` file, or one that
            ``torch.save`` made (read with ``weights_only=True``).
        into: a torch module, or nested dicts of tensors, arrays and modules. Stored
            tensors are copied into those of the same name, converted where types differ;
            parameters keep their identity and their device.
        names: take only tensors whose name fits one of these patterns (``"encoder.*"``).
        key: the part of the stored state to take, such as ``"model"``; names are then
            those within it. With ``into``, found out where it is not given and only one
            part fits.
        digest: the manifest's digest that was announced.
        verify: compare the digest of every tensor that is read. False trusts the disk.
        strict: raise unless stored and wanted tensors fit one to one; nothing is copied.
        resize: what to do where shapes differ: ``"skip"``, or ``"overlap"`` to copy the
            corner that both have, as a child does that is wider than its parent.
        framework: ``"torch"`` or ``"numpy"`` for the tensors returned; by default what
            each was saved from, or numpy where torch is not installed. numpy has no bfloat16
            and no float8: an error says so.
        root: the weights root that nothing may lead out of; by default that of the
            session or the environment, else the folder that ``path`` stands in.
        read_roots: further folders that may be read from; default likewise.
        stale_timeout_s: seconds to wait for the announced digest.

    Returns:
        With ``into`` a :class:`MatchReport`. Else the state as it was saved; with
        ``names`` a flat dict of the tensors that fit. Tensors returned are mapped
        copy-on-write: reading them late is free of cost, changing them touches no file.

    Raises:
        WeightsNotFound: nothing is there.
        StaleWeights: the announced digest did not appear in time.
        CorruptWeights: a file is cut, forged or changed; ``into`` is untouched then.
        WeightsMismatch: ``strict``, and something does not fit.
        WeightsError: no such ``key``; a type that the framework lacks.
        StorageError: the file system refused it, and went on to: what is tried again, and for
            how long, is in :mod:`~trial_runtime.weights.storage.faults`. A server that is away
            behind a hard mount is waited for without a bound.
        PathOutsideRoot, PathThroughLink: ``path`` may not be read from.
    """
    located = locate_to_read(path, root, read_roots)
    with faults.named_faults(located.path):
        source = open_source(located, digest, Patience(stale_timeout_s))
    if into is not None:
        return _load_into(source, collect(into), names, key, verify, strict, resize)
    part = key or ""
    within = source.names(part)
    if names is None:
        source.prepare(within, verify)
        return source.state(part, framework)
    cut = len(part) + 1 if part else 0
    chosen = selected((name[cut:] for name in within), names)
    source.prepare((_full(part, name) for name in chosen), verify)
    return {name: source.tensor(_full(part, name), framework) for name in chosen}


def _full(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _load_into(
    source: Source,
    targets: dict[str, Target],
    names: str | Iterable[str] | None,
    key: str | None,
    verify: bool,
    strict: bool,
    resize: Resize,
) -> MatchReport:
    part = split_by_key(source.forms, targets, key)
    prefix = f"{part}." if part else ""
    stored = {
        name.removeprefix(prefix): form
        for name, form in source.forms.items()
        if name.startswith(prefix)
    }
    if names is not None:
        patterns = (names,) if isinstance(names, str) else tuple(names)
        stored = {name: stored[name] for name in selected(stored, patterns)}
        targets = {name: targets[name] for name in selected(targets, patterns)}
    report = match(stored, {name: t.form for name, t in targets.items()}, resize=resize)
    if strict:
        demand_all(report, source.where)
    corners = {r.name: overlap(r.stored, r.wanted) for r in report.reshaped if r.copied}
    wanted = [*report.loaded, *corners]
    nbytes = source.prepare((_full(part, name) for name in wanted), verify)
    _copy(source, targets, report, corners, part)
    return replace(report, key=part, bytes_read=nbytes, digest=source.digest)


def _copy(
    source: Source,
    targets: dict[str, Target],
    report: MatchReport,
    corners: dict[str, tuple[slice, ...]],
    part: str,
) -> None:
    """Copy what was checked. All sources are opened before the first target changes."""
    converted = set(report.converted)
    as_bytes: list[tuple[memoryview, memoryview]] = []
    as_values: list[tuple[Target, Any, tuple[slice, ...] | None]] = []
    for name in (*report.loaded, *corners):
        target = targets[name]
        if name not in corners and name not in converted:
            there = source.view(_full(part, name))
            here = target.writable_bytes() if there is not None else None
            if there is not None and here is not None:
                as_bytes.append((there, here))
                continue
        tensor = source.tensor(_full(part, name), target.like)
        as_values.append((target, tensor, corners.get(name)))
    copy_bytes(as_bytes)
    for target, tensor, corner in as_values:
        target.put(tensor, corner)
    for name in report.loaded:
        targets[name].touched()


@dataclass(frozen=True)
class Verified:
    """The weights that were checked."""

    digest: str
    tensors: int
    nbytes: int


def verify(
    path: str | os.PathLike[str],
    digest: str | None = None,
    *,
    root: str | None = None,
    read_roots: tuple[str, ...] | None = None,
    stale_timeout_s: float = STALE_TIMEOUT_S,
) -> Verified:
    """Check the manifest and every tensor, inherited ones included; reads all bytes.

    Args:
        path: what was given to ``save``.
        digest: what the manifest's digest must be.
        root: the weights root, see ``load``.
        read_roots: further folders that may be read from.
        stale_timeout_s: seconds to wait for the announced digest.

    Raises:
        WeightsNotFound, StaleWeights, CorruptWeights, PathError: see ``load``.
    """
    opened = open_manifest(
        locate_to_read(path, root, read_roots), digest, Patience(stale_timeout_s)
    )
    manifest = opened.manifest
    files = tensor_files(opened)
    files.prepare(manifest.tensors.values())
    files.verify(manifest.tensors)
    return Verified(opened.digest, len(manifest.tensors), manifest.nbytes)
