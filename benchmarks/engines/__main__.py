"""``python -m benchmarks.engines PART … [--quick]``: some parts of the section; nothing is kept."""

from __future__ import annotations

import argparse

from benchmarks.__main__ import show
from benchmarks.engines import PARTS, rows_of


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description=__doc__)
    parser.add_argument("parts", nargs="+", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    options = parser.parse_args()
    for part in options.parts:
        show(rows_of(part, quick=options.quick))


if __name__ == "__main__":
    main()
