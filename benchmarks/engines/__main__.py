"""``python -m benchmarks.engines PART …|all [--quick]``: parts of the section; nothing is kept."""

from __future__ import annotations

import argparse
import time

from benchmarks.__main__ import show
from benchmarks.engines import PARTS, rows_of


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description=__doc__)
    parser.add_argument(
        "parts", nargs="+", choices=[*PARTS, "all"], metavar="PART", help=", ".join([*PARTS, "all"])
    )
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    options = parser.parse_args()
    for part in PARTS if "all" in options.parts else options.parts:
        began = time.monotonic()
        print(f"\n{part}", flush=True)
        show(rows_of(part, quick=options.quick))
        print(f"  {part}: {(time.monotonic() - began) / 60:.1f} minutes", flush=True)


if __name__ == "__main__":
    main()
