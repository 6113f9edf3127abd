"""``python -m benchmarks.engines PART …|all [--step TEXT] [--quick] [--keep]``: parts of it.

With ``--keep`` their rows replace those of the same name among the results that are kept.
"""

from __future__ import annotations

import argparse
import os
import time

from benchmarks import collector
from benchmarks.__main__ import SECTIONS, show
from benchmarks.engines import PARTS, rows_of
from benchmarks.engines.steps import ONLY
from benchmarks.machine import machine


def main() -> None:
    """Measure, print, and keep if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description=__doc__)
    parser.add_argument(
        "parts", nargs="+", choices=[*PARTS, "all"], metavar="PART", help=", ".join([*PARTS, "all"])
    )
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    parser.add_argument("--keep", action="store_true", help="put the rows into the results")
    parser.add_argument("--step", default="", metavar="TEXT", help="only steps with it in the name")
    options = parser.parse_args()
    os.environ[ONLY] = options.step  # the parts are processes of their own
    for part in PARTS if "all" in options.parts else options.parts:
        began = time.monotonic()
        print(f"\n{part}", flush=True)
        here = machine()
        rows = rows_of(part, quick=options.quick)
        show(rows)
        print(f"  {part}: {(time.monotonic() - began) / 60:.1f} minutes", flush=True)
        if options.keep and not options.quick:
            collector.keep_some("engines", here, rows)
            collector.write(SECTIONS)


if __name__ == "__main__":
    main()
