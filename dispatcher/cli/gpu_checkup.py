"""What ``doctor`` says of this machine's GPUs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

from dispatcher.cli.checkup import Finding, Level

#: A driver that hangs is said after this time (seconds), and left to hang in its own process.
_LIMIT_S = 20.0


def check_gpus() -> Iterator[Finding]:
    """How many there are, and whether agents here can count them. Looks in another process."""
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
