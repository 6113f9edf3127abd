"""Keep each section's rows, and write ``RESULTS.md`` from all that are kept.

A section's rows lie in ``benchmarks/results/<section>.json`` with the time and the machine,
so sections may be run on different days; the report says when each was.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict

from benchmarks.machine import Machine, markdown
from benchmarks.rows import Row

HERE = Path(__file__).parent
RESULTS = HERE / "results"
REPORT = HERE / "RESULTS.md"

#: In the folder of results.
COMPARISON = "beside.json"
MARKS = {True: "yes", False: "**no**", None: "–"}


class Section(TypedDict):
    """One section as it was last measured."""

    measured_at: str  # UTC, to the minute
    machine: Machine
    rows: list[Row]


class Comparison(TypedDict):
    """One quantity of this version beside an earlier one, measured in turns."""

    what: str
    before: float
    now: float
    more_is_better: bool


class Beside(TypedDict):
    """The last comparison with an earlier version."""

    commit: str
    measured_at: str  # UTC, to the minute
    machine: Machine
    rounds: int
    rows: list[Comparison]


def keep_comparison(commit: str, machine: Machine, rounds: int, rows: Sequence[Comparison]) -> None:
    """Replace the comparison with an earlier version.

    Args:
        commit: the earlier one.
        machine: where both were measured.
        rounds: how often each was.
        rows: medians.
    """
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    beside = Beside(commit=commit, measured_at=now, machine=machine, rounds=rounds, rows=list(rows))
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(beside, indent=1, ensure_ascii=False)
    (RESULTS / COMPARISON).write_text(text + "\n")


def kept_comparison() -> Beside | None:
    """The comparison that is kept, if there is one."""
    path = RESULTS / COMPARISON
    if not path.exists():
        return None
    kept: Beside = json.loads(path.read_text())
    return kept


def comparison_table(rows: Sequence[Comparison]) -> list[str]:
    """The rows as lines of a Markdown table. A change above zero is for the better."""
    lines = ["| what | before | now | change |", "|---|---|---|---|"]
    for row in rows:
        before, now = row["before"], row["now"]
        change = "–"
        if before and now:
            better = now / before if row["more_is_better"] else before / now
            change = f"{better - 1:+.0%}"
        lines.append(f"| {_cell(row['what'])} | {before:.4g} | {now:.4g} | {change} |")
    return lines


def keep(name: str, machine: Machine, rows: Sequence[Row]) -> None:
    """Replace what was kept of a section."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    section = Section(measured_at=now, machine=machine, rows=list(rows))
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(section, indent=1, ensure_ascii=False)
    (RESULTS / f"{name}.json").write_text(text + "\n")


def keep_some(name: str, machine: Machine, rows: Sequence[Row]) -> None:
    """Replace, of what was kept of a section, the rows of the same names; others stay."""
    before = kept([name]).get(name)
    new = {one["what"] for one in rows}
    old = [one for one in before["rows"] if one["what"] not in new] if before else []
    keep(name, machine, [*old, *rows])


def kept(names: Sequence[str]) -> dict[str, Section]:
    """What is kept of these sections, in this order; those never run are left out."""
    files = {name: RESULTS / f"{name}.json" for name in names}
    return {name: json.loads(path.read_text()) for name, path in files.items() if path.exists()}


def write(names: Sequence[str]) -> Path:
    """Write the report from what is kept; return where it lies."""
    REPORT.write_text(report(kept(names)))
    return REPORT


def report(sections: dict[str, Section]) -> str:
    """The whole page."""
    lines = [
        "# Results of the benchmarks",
        "",
        "Written by `make bench`; do not edit. Targets are ratios within one run wherever that "
        "makes sense, since absolute figures drift from machine to machine. Peers run in "
        "environments of their own; what is counted of each is said at the top of its script "
        "in `benchmarks/peers`. A dash under *met*: no target, or not measured here.",
        "",
        summary([row for section in sections.values() for row in section["rows"]]),
    ]
    if sections:
        newest = max(sections.values(), key=lambda section: section["measured_at"])
        lines += ["", "## The machine", "", markdown(newest["machine"])]
    for name, section in sections.items():
        lines += [
            "",
            f"## {name.replace('_', ' ').capitalize()}",
            "",
            _when(section, newest["machine"]),
            "",
        ]
        lines += table(section["rows"])
    beside = kept_comparison()
    if beside is not None:
        lines += [
            "",
            "## Beside an earlier version",
            "",
            f"Commit {beside['commit']} and this one in turns, {beside['rounds']} rounds without "
            f"peers; medians. Measured {beside['measured_at']} UTC. A change above zero is for the "
            "better: more trials a second, less time or memory. Figures of rows are the first of "
            "each, as ratios to their floors where the sections above have ratios.",
            "",
            *comparison_table(beside["rows"]),
        ]
    return "\n".join(lines) + "\n"


def summary(rows: Sequence[Row]) -> str:
    """How many targets are met."""
    verdicts = [row["ok"] for row in rows]
    met, missed = verdicts.count(True), verdicts.count(False)
    return f"{met} targets met, {missed} missed, {verdicts.count(None)} without a verdict."


def table(rows: Sequence[Row]) -> list[str]:
    """The rows as lines of a Markdown table."""
    lines = ["| what | target | measured | met | detail |", "|---|---|---|---|---|"]
    for row in rows:
        cells = (row["what"], row["target"], row["measured"], MARKS[row["ok"]], row["detail"])
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return lines


def _when(section: Section, newest: Machine) -> str:
    told = f"Measured {section['measured_at']} UTC"
    machine = section["machine"]
    alike = all(machine[key] == newest[key] for key in ("memory", "system", "python"))
    return f"{told}." if alike else f"{told} on another machine:\n\n{markdown(machine)}"


def _cell(text: str) -> str:
    """Text that stays within its cell."""
    return " ".join(text.split()).replace("|", "\\|")
