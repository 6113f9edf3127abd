"""A study's part of ``docs/tuner-results.md``: tables between two marks, written by the study.

What is around the marks is written by people.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.tuner_digits.baseline import Sweep, mean_test, mean_valid
from benchmarks.tuner_digits.searching import Found
from benchmarks.tuner_digits.verdict import compare

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "tuner-results.md"
IMAGES = DOCS / "images"


def write(study: str, lines: Sequence[str], page: Path | None = None) -> None:
    """Puts the lines between ``<!-- study -->`` and ``<!-- end of study -->``.

    Raises:
        ValueError: the page has no such marks.
    """
    begin, end = f"<!-- {study} -->", f"<!-- end of {study} -->"
    page = PAGE if page is None else page
    text = page.read_text()
    part = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not part.search(text):
        raise ValueError(f"{page} has no {begin} … {end}")
    inside = "\n".join([begin, "", *lines, "", end])
    page.write_text(part.sub(lambda _: inside, text))


def verdicts(
    ours: Mapping[str, Sequence[Found]],
    baseline: Sequence[Found],
    baseline_name: str,
    budget: float,
) -> list[str]:
    """On how many seeds each tuner won, the means, and how soon it was as good."""
    lines = [
        "| search | better, validation | better, test | mean validation | mean test "
        "| as good after |",
        "|---|---|---|---|---|---|",
        f"| {baseline_name} | – | – | {mean_valid(baseline):.4f} | {mean_test(baseline):.4f} | – |",
    ]
    for name, found in ours.items():
        one = compare(found, baseline)
        lines.append(
            f"| {name} | {one.valid} of {one.seeds} | {one.test} of {one.seeds} "
            f"| {mean_valid(found):.4f} | {mean_test(found):.4f} "
            f"| {as_good_after(found, baseline, budget):.0%} of the budget |"
        )
    return lines


def as_good_after(ours: Sequence[Found], baseline: Sequence[Found], budget: float) -> float:
    """The share of the budget until the baseline's last validation; the median over the seeds.

    A search that never gets there counts with the whole budget.
    """
    spent = [
        next((at.spent for at in own.path if at.valid >= other.valid), budget)
        for own, other in zip(ours, baseline, strict=True)
    ]
    return statistics.median(spent) / budget


def by_seed(
    ours: Mapping[str, Sequence[Found]],
    baseline: Sequence[Found],
    baseline_name: str,
    seeds: Sequence[int],
) -> list[str]:
    """Validation and test of every search; better than the baseline's is bold."""
    heads = " | ".join(f"seed {seed}" for seed in seeds)
    lines = [f"| validation / test | {heads} |", "|---" * (len(seeds) + 1) + "|"]
    for name, found in {baseline_name: baseline, **ours}.items():
        cells = [
            f"{_bold(one.valid, other.valid)} / {_bold(one.test, other.test)}"
            for one, other in zip(found, baseline, strict=True)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def lengths(sweep: Sweep, unit: str) -> list[str]:
    """What random search reaches, by how long each of its trials is trained."""
    lines = [
        f"| {unit} a trial of random search | mean validation | mean test |",
        "|---|---|---|",
    ]
    for length, found in sweep.found.items():
        mark = " (the baseline)" if length == sweep.chosen else ""
        lines.append(f"| {length}{mark} | {mean_valid(found):.4f} | {mean_test(found):.4f} |")
    return lines


def _bold(own: float, other: float) -> str:
    return f"**{own:.4f}**" if own > other else f"{own:.4f}"
