"""The check of this machine's GPUs for ``doctor``."""

from __future__ import annotations

from collections.abc import Iterator

from dispatcher.cli.checkup import Finding, Level

#: Seconds after which a driver counts as hung.
_LIMIT_S = 20.0


def check_gpus() -> Iterator[Finding]:
    """Check how many GPUs there are, and whether agents can count them. Runs another process."""
    from dispatcher.remote_python.errors import ProgramFailed
    from dispatcher.remote_python.gpu_findings import AllGpus, in_words
    from dispatcher.remote_python.runner import ask_here

    try:
        answer = ask_here("gpus", {}, AllGpus, limit_s=_LIMIT_S)
    except TimeoutError:
        text = f"the GPU driver has not answered for {_LIMIT_S:.0f} s"
        yield Finding("gpus", Level.PROBLEM, text, "does nvidia-smi answer?")
        return
    except ProgramFailed:
        yield Finding("gpus", Level.NOTE, "cannot be looked at")
        return
    if not answer.gpus:
        yield Finding("gpus", Level.OK, f"none ({answer.trouble or 'the driver sees none'})")
        return
    for index, gpu in enumerate(answer.gpus):
        if gpu.trouble:
            yield Finding("gpus", Level.PROBLEM, f"GPU {index}: {gpu.trouble}")
    if not answer.pynvml:
        text = f"{in_words(answer.gpus)}; not counted, since nvidia-ml-py is not installed"
        yield Finding("gpus", Level.NOTE, text, "pip install 'bequeath[gpu]'")
        return
    yield Finding("gpus", Level.OK, in_words(answer.gpus))
