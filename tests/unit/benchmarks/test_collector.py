"""Sections that were run apart meet in one report."""

import pytest

from benchmarks import collector
from benchmarks.beside import figure_of
from benchmarks.machine import Machine
from benchmarks.rows import row

HERE = Machine(cores="2", memory="8 GiB", system="Linux", python="3.11", disk="ext4")


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch, tmp_path):
    monkeypatch.setattr(collector, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(collector, "REPORT", tmp_path / "RESULTS.md")


def test_a_section_run_earlier_stays_in_the_report():
    collector.keep("dispatch", HERE, [row("a", "≤ 1", "2", False, "profile")])
    collector.write(["startup", "dispatch"])
    collector.keep("startup", HERE, [row("b", "≤ 3", "1", True), row("c", "", "failed", None)])

    text = collector.write(["startup", "dispatch"]).read_text()

    assert "1 targets met, 1 missed, 1 without a verdict." in text
    assert text.index("## Startup") < text.index("## Dispatch")
    assert "| a | ≤ 1 | 2 | **no** | profile |" in text


def test_running_a_section_again_replaces_its_rows():
    collector.keep("dispatch", HERE, [row("a", "≤ 1", "2", False)])
    collector.keep("dispatch", HERE, [row("a", "≤ 1", "0.5", True)])

    text = collector.write(["dispatch"]).read_text()

    assert "| 0.5 | yes |" in text
    assert "**no**" not in text


def test_a_section_of_another_machine_says_so():
    collector.keep("dispatch", {**HERE, "memory": "64 GiB"}, [])
    collector.keep("startup", HERE, [])
    sections = collector.kept(["startup", "dispatch"])
    sections["startup"]["measured_at"] = "2999-01-01 00:00"

    text = collector.report(sections)

    assert "on another machine:\n\n- Cores: 2\n- Memory: 64 GiB" in text


def test_cells_keep_to_themselves():
    line = collector.table([row("a|b", "one\ntwo", "", None)])[-1]

    assert line == "| a\\|b | one two |  | – |  |"


def test_a_comparison_says_which_changes_are_for_the_better():
    rows = [
        collector.Comparison(what="trials a second", before=100.0, now=110.0, more_is_better=True),
        collector.Comparison(what="memory", before=100.0, now=125.0, more_is_better=False),
        collector.Comparison(what="growth", before=0.0, now=0.0, more_is_better=False),
    ]
    collector.keep_comparison("abc1234", HERE, 3, rows)

    text = collector.write([]).read_text()

    assert "Commit abc1234 and this one in turns, 3 rounds" in text
    assert "| trials a second | 100 | 110 | +10% |" in text
    assert "| memory | 100 | 125 | -20% |" in text
    assert "| growth | 0 | 0 | – |" in text


@pytest.mark.parametrize(
    "measured, figure",
    [
        ("p50 2.36 ×, p99 2.62 ×", 2.36),
        ("p99 2.72 × (4.7 against 1.7 ms)", 2.72),
        ("+0 KiB in 5 s", 0.0),
        ("0.79 × (7.6 against 9.6 ms)", 0.79),
        ("10.0%", 10.0),
        ("not here", None),
    ],
)
def test_the_figure_of_a_row_is_its_first_number(measured, figure):
    assert figure_of(measured) == figure
