"""``python -m benchmarks.engines.part PART [--quick]``: a part's rows, as JSON, one on each line.

It is run by :mod:`benchmarks.engines.spaces`, which gives it process numbers of its own.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module

from benchmarks.engines.steps import ONLY, Step, taken
from benchmarks.rows import Row


def main() -> None:
    """Measure, and print."""
    part, quick = sys.argv[1], "--quick" in sys.argv

    def measure() -> list[Row]:
        for line in import_module(f"{__package__}.{part}").run(quick=quick):
            _print(line)
        return []

    what = f"engines: {part} {os.environ.get(ONLY, '')}".rstrip()
    for failed in taken([Step(what, "", measure)]):
        _print(failed)


def _print(line: Row) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
