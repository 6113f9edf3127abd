"""Sections that were run apart meet in one report."""

import pytest

from benchmarks import collector
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
