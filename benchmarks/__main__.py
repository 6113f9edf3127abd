"""``python -m benchmarks [SECTION …] [--quick]``: measure, print, and write RESULTS.md.

Without a section, all of them but the soak. A section that fails is a row without a figure, and the
others go on. ``--quick`` is a smoke test with few repetitions: it prints and keeps nothing.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from importlib import import_module

from benchmarks import collector
from benchmarks.machine import machine, markdown
from benchmarks.rows import Row, row

SECTIONS = (
    "startup",
    "tables",
    "first_hour",
    "dispatch",
    "cost",
    "gates",
    "memory",
    "store",
    "sinks",
    "web",
    "weights",
    "nfs",
    "remote",
    "engines",
    "tuners",
    "tuner_peers",
    "tuner_digits",
    "tuner_nas",
    "tuner_fronts",
    "pbt",
    "architecture",
    "digits",
    "soak",
)

#: Minutes long, and no comparison: run when asked for by name (``make soak``).
ON_DEMAND = frozenset({"soak"})
WORDS = {True: "met ", False: "MISS", None: "  – "}
QUICK_WEIGHTS = {"mib": 128, "repetitions": 3}


def main() -> int:
    """Run the sections asked for; 1 when one of them failed, 0 whatever the figures are."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="few repetitions, nothing kept")
    options = parser.parse_args()
    if unknown := set(options.sections) - set(SECTIONS):
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    here = machine()
    print(markdown(here), flush=True)
    failed = False
    everything: list[Row] = []
    for name in options.sections or [one for one in SECTIONS if one not in ON_DEMAND]:
        print(f"\n{name}", flush=True)
        try:
            rows = measured(name, quick=options.quick)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other sections go on
            traceback.print_exc()
            failed = True
            told = " ".join(f"{type(error).__name__}: {error}".split())
            rows = [row(f"section {name}", "", "failed", None, told)]
        show(rows)
        everything += rows
        if not options.quick:
            collector.keep(name, here, rows)
            collector.write(SECTIONS)  # after each, so that an interrupt loses little
    print(f"\n{collector.summary(everything)}")
    return int(failed)


def measured(name: str, *, quick: bool) -> list[Row]:
    """The rows of a section, whose module is imported only now."""
    module = import_module(f"benchmarks.{name}")
    options: dict[str, object] = {"quick": quick}
    if name == "weights":  # knows sizes, not haste
        options = dict(QUICK_WEIGHTS) if quick else {}
    rows: list[Row] = module.run(**options)
    return rows


def show(rows: list[Row]) -> None:
    """Print the rows, one a line and their detail below."""
    for one in rows:
        target = f" (target {one['target']})" if one["target"] else ""
        print(f"  {WORDS[one['ok']]}  {one['what']}: {one['measured']}{target}")
        if one["detail"]:
            print(f"          {one['detail']}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
