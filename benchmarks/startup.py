"""How long a trial's import and a command's help take, as whole processes.

The candidates take turns, so that a machine that changes its mind changes it for all of
them; figures are medians.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.rows import Row, median, row

ROOT = Path(__file__).parent.parent
ROUNDS = 31
QUICK_ROUNDS = 15
MS = 1000.0

#: Times the interpreter. Chosen as benchmarks/README.md tells.
BEYOND, HELP = 1.2, 7.8

COMMANDS = {
    "bare": ("-c", "pass"),
    "floor": ("-c", "import zmq, msgspec"),
    "sdk": ("-c", "import trial_runtime"),
    # The SDK imports zmq and msgspec when a trial connects; this is what it then comes to.
    "connected": ("-c", "import trial_runtime, zmq, msgspec"),
    "help": ("-m", "dispatcher.cli", "--help"),
}


def run(*, quick: bool = False) -> list[Row]:
    """Both rows of the import, and the help of the command line."""
    names = list(COMMANDS)
    if not (ROOT / "dispatcher" / "cli" / "__main__.py").exists():
        names.remove("help")
    times = interleaved(names, QUICK_ROUNDS if quick else ROUNDS)
    bare, floor, sdk = (median(times[name]) for name in ("bare", "floor", "sdk"))
    # Neighbours in time are compared, which a slow drift of the machine cannot bias.
    ratio = median([s / f for s, f in zip(times["sdk"], times["floor"], strict=True)])
    beyond = median([s - b for s, b in zip(times["sdk"], times["bare"], strict=True)])
    told = f"medians of {len(times['sdk'])} rounds: interpreter {bare * MS:.1f} ms"
    return [
        row(
            "`import trial_runtime`, beyond the interpreter, against the interpreter alone",
            f"≤ {BEYOND:g} ×",
            f"{beyond / bare:.2f} × ({beyond * MS:.1f} against {bare * MS:.1f} ms)",
            beyond <= BEYOND * bare,
            f"aim: ≤ 60 ms; {told}, with the import {sdk * MS:.1f} ms",
        ),
        row(
            "`import trial_runtime`, against `import zmq, msgspec`",
            "≤ 1.25 ×",
            f"{ratio:.2f} ×",
            ratio <= 1.25,
            f"{told}, with zmq and msgspec {floor * MS:.1f} ms, ours {sdk * MS:.1f} ms, "
            f"ours with both {median(times['connected']) * MS:.1f} ms",
        ),
        _help(times.get("help"), bare),
    ]


def _help(times: list[float] | None, bare: float) -> Row:
    what, target = "`bequeath --help`, against the interpreter alone", f"≤ {HELP:g} ×"
    if times is None:
        return row(what, target, "not measured", None, "there is no dispatcher.cli to run")
    took = median(times)
    measured = f"{took / bare:.1f} × ({took * MS:.0f} against {bare * MS:.1f} ms)"
    return row(what, target, measured, took <= HELP * bare, "aim: < 0.3 s; medians")


def interleaved(names: list[str], rounds: int) -> dict[str, list[float]]:
    """Seconds of each command in each round, after one round that warms the caches.

    Raises:
        RuntimeError: a command failed; says which, with its last line.
    """
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds + 1):
        for name in names:
            took = _seconds(COMMANDS[name])
            if number:
                times[name].append(took)
    return times


def _seconds(arguments: tuple[str, ...]) -> float:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.perf_counter() - began
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        raise RuntimeError(f"python {' '.join(arguments)}: exit code {done.returncode}, {last}")
    return took


if __name__ == "__main__":
    for line in run(quick="--quick" in sys.argv):
        print(line["what"], "|", line["target"], "|", line["measured"], "|", line["ok"])
