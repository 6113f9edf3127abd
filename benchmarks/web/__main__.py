"""``python -m benchmarks.web PART …|all [--quick] [--keep]``: parts of the section.

With ``--keep`` their rows replace those of the same name among the results that are kept.
"""

from __future__ import annotations

import argparse
import time

from benchmarks import collector
from benchmarks.__main__ import SECTIONS, show
from benchmarks.machine import machine
from benchmarks.web import PARTS, rows_of


def main() -> None:
    """Measure, print, and keep if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.web", description=__doc__)
    parser.add_argument(
        "parts", nargs="+", choices=[*PARTS, "all"], metavar="PART", help=", ".join([*PARTS, "all"])
    )
    parser.add_argument("--quick", action="store_true", help="small stores, few repetitions")
    parser.add_argument("--keep", action="store_true", help="put the rows into the results")
    options = parser.parse_args()
    for part in PARTS if "all" in options.parts else options.parts:
        began = time.monotonic()
        here = machine()
        print(f"\n{part}", flush=True)
        rows = rows_of(part, quick=options.quick)
        show(rows)
        print(f"  {part}: {time.monotonic() - began:.0f} s, {here['cores']}", flush=True)
        if options.keep and not options.quick:
            collector.keep_some("web", here, rows)
            collector.write(SECTIONS)


if __name__ == "__main__":
    main()
