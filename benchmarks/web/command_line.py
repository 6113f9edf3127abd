"""What the page costs those who do not use it: nothing of it is imported by the command line."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.rows import Row, median, row
from benchmarks.startup import QUICK_ROUNDS, ROUNDS, interleaved

HELP_S = 0.3

_LOADED = """
import sys
from dispatcher.cli.main import main
sys.argv[1:] = ["--help"]
try:
    main()
except SystemExit:
    pass
names = ("dispatcher.web", "dispatcher.sinks", "starlette", "uvicorn", "asyncio")
print("\\n" + " ".join(name for name in names if name in sys.modules))
"""


def rows_of_command(*, quick: bool = False) -> list[Row]:
    """`bequeath --help`, as a whole process."""
    took = median(interleaved(["help"], QUICK_ROUNDS if quick else ROUNDS)["help"])
    done = subprocess.run(
        [sys.executable, "-c", _LOADED], stdout=subprocess.PIPE, text=True, check=True
    )
    loaded = done.stdout.splitlines()[-1]
    return [
        row(
            "`bequeath --help`",
            f"< {HELP_S:g} s",
            f"{took:.3f} s",
            took < HELP_S and not loaded,
            f"median; of page, sinks and servers it imports {loaded or 'nothing'}",
        )
    ]
