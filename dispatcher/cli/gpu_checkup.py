"""The check of this machine's GPUs for ``doctor``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

from dispatcher.cli.checkup import Finding, Level

#: Seconds after which a driver counts as hung; its own process is left behind.
_LIMIT_S = 20.0


def check_gpus() -> Iterator[Finding]:
    """Check how many GPUs there are, and whether agents can count them. Runs another process."""
    from dispatcher.ssh.host_programs import program_text
    from dispatcher.ssh.inspecting_gpus import in_words

    command = [sys.executable, "-P", "-c", program_text("gpus")]
    try:
        ran = subprocess.run(command, capture_output=True, timeout=_LIMIT_S, check=False)
        answer = json.loads(ran.stdout)
    except subprocess.TimeoutExpired:
        text = f"the GPU driver has not answered for {_LIMIT_S:.0f} s"
        yield Finding("gpus", Level.PROBLEM, text, "does nvidia-smi answer?")
        return
    except ValueError:
        yield Finding("gpus", Level.NOTE, "cannot be looked at")
        return
    if not answer["gpus"]:
        yield Finding("gpus", Level.OK, f"none ({answer['trouble'] or 'the driver sees none'})")
        return
    for index, gpu in enumerate(answer["gpus"]):
        if gpu.get("trouble"):
            yield Finding("gpus", Level.PROBLEM, f"GPU {index}: {gpu['trouble']}")
    if not answer["pynvml"]:
        text = f"{in_words(answer['gpus'])}; not counted, since nvidia-ml-py is not installed"
        yield Finding("gpus", Level.NOTE, text, "pip install 'bequeath[gpu]'")
        return
    yield Finding("gpus", Level.OK, in_words(answer["gpus"]))
