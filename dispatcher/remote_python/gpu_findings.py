"""Judges the GPUs of a machine; the result is a finding that people can act on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from dispatcher.findings import Finding, Severity


class GpuFacts(msgspec.Struct, frozen=True):
    """Facts of one GPU. ``parts``: the memory of each of its MIG devices, if it is split (bytes);
    ``trouble``: why the driver tells nothing of it."""

    name: str
    memory: int
    parts: list[int] | None = None
    trouble: str = ""


class AllGpus(msgspec.Struct, frozen=True):
    """The answer of the program ``gpus``. ``pynvml``: our agent can count them. ``shown``: their
    numbers as the driver counts, where others are hidden; None: there are no others."""

    gpus: list[GpuFacts]
    trouble: str = ""
    pynvml: bool = False
    shown: list[int] | None = None

    @property
    def by_number(self) -> dict[int, GpuFacts]:
        """The GPUs by their numbers as the driver counts."""
        shown = range(len(self.gpus)) if self.shown is None else self.shown
        return dict(zip(shown, self.gpus, strict=False))


def judge_gpus(
    facts: AllGpus, *, wanted: float, indices: tuple[int, ...], memory: int = 0
) -> Finding:
    """Judge the answer of the program ``gpus``.

    Args:
        facts: the answer.
        wanted: how many each trial of the experiment file needs.
        indices: ``gpuIndices`` of the file; empty for all.
        memory: the memory that each of a trial's GPUs must have in all (bytes).
    """
    gpus = facts.gpus
    if not gpus:
        text = f"none ({facts.trouble})" if facts.trouble else "none"
        who = "this experiment's trials need GPUs" if wanted else "gpuIndices names some"
        bad = bool(wanted or indices)
        hidden = facts.shown is not None and not facts.trouble
        why = "CUDA_VISIBLE_DEVICES shows none" if hidden else "is the driver installed and loaded"
        hint = f"{who}: {why} there{'' if hidden else '?'}" if bad else ""
        return _finding(bad, text, hint)
    text, there = in_words(gpus), facts.by_number
    absent = [index for index in indices if index not in there]
    if absent:
        names = ", ".join(map(str, absent))
        last = len(gpus) - 1
        have = f"0 to {last}" if facts.shown is None else ", ".join(map(str, facts.shown))
        return _finding(True, text, f"gpuIndices names {names}; GPUs there are {have}")
    degraded = [index for index, gpu in there.items() if gpu.trouble]
    if degraded:
        index = degraded[0]
        return _finding(bool(wanted), f"{text}; GPU {index}: {there[index].trouble}")
    offered = [there[index] for index in indices] or gpus
    # One that is split is no place itself, and nobody is shown more than one of its parts.
    whole = [gpu.memory for gpu in offered if gpu.parts is None]
    split = [nbytes for gpu in offered for nbytes in gpu.parts or ()]
    fitting = sum(each >= memory for each in (whole if wanted > 1 else whole + split))
    if wanted > fitting:
        least = f" of at least {memory / (1 << 30):.1f} GiB" if memory else ""
        hint = f"each trial needs {wanted:g}{least}, and {fitting} of these may be lent to one"
        return _finding(True, text, hint)
    return _finding(False, text)


def _finding(bad: bool, text: str, hint: str = "") -> Finding:
    """``bad``: trials that need GPUs cannot run there."""
    return Finding("gpus", Severity.PROBLEM if bad else Severity.OK, text, hint)


def in_words(gpus: Sequence[GpuFacts]) -> str:
    """``2 × NVIDIA H100 80GB HBM3 (79.6 GiB), 1 × … (79.6 GiB, split in 7)``."""
    kinds = Counter((gpu.name or "unknown", _size(gpu)) for gpu in gpus)
    return ", ".join(f"{many} × {name} ({size})" for (name, size), many in kinds.items())


def _size(gpu: GpuFacts) -> str:
    split = f", split in {len(gpu.parts)}" if gpu.parts is not None else ""
    return f"{gpu.memory / (1 << 30):.1f} GiB{split}"
