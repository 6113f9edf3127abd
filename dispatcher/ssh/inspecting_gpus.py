"""What GPUs a machine has, as a finding that people can act on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple


class GpuFinding(NamedTuple):
    """``bad``: trials that need GPUs cannot run there."""

    bad: bool
    text: str
    hint: str = ""


def judge_gpus(told: Mapping[str, Any], *, wanted: bool, indices: tuple[int, ...]) -> GpuFinding:
    """What the program ``gpus`` said of a machine.

    Args:
        told: its answer.
        wanted: trials of the experiment file need GPUs.
        indices: its ``gpuIndices``.
    """
    gpus = told["gpus"]
    if not gpus:
        text = f"none ({told['trouble']})" if told["trouble"] else "none"
        hint = "this experiment's trials need GPUs: is the driver installed and loaded there?"
        return GpuFinding(wanted, text, hint if wanted else "")
    text = in_words(gpus)
    absent = [index for index in indices if index >= len(gpus)]
    if absent:
        names = ", ".join(map(str, absent))
        hint = f"gpuIndices names {names}; GPUs there are 0 to {len(gpus) - 1}"
        return GpuFinding(True, text, hint)
    ailing = [index for index, gpu in enumerate(gpus) if gpu.get("trouble")]
    if ailing:
        index = ailing[0]
        return GpuFinding(wanted, f"{text}; GPU {index}: {gpus[index]['trouble']}")
    return GpuFinding(False, text)


def in_words(gpus: list[Mapping[str, Any]]) -> str:
    """``2 × NVIDIA H100 80GB HBM3 (79.6 GiB), 1 × …``."""
    kinds = Counter((str(gpu["name"]) or "unknown", int(gpu["memory"])) for gpu in gpus)
    return ", ".join(
        f"{many} × {name} ({memory / (1 << 30):.1f} GiB)" for (name, memory), many in kinds.items()
    )
