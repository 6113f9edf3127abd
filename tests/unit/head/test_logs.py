"""The head's log stays within its bound."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from dispatcher.head import logs
from dispatcher.head.logs import head_log


def test_it_is_rotated_and_the_newest_lines_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "LOG_BYTES", 10_000)
    with head_log(tmp_path / "head.log", "info") as log:
        for number in range(2_000):
            log.info("tuner note", text="x" * 50, number=number)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["head.log", *(f"head.log.{n}" for n in (1, 2, 3))]
    assert all(file.stat().st_size <= 10_000 for file in files)
    lines = [json.loads(line) for line in files[0].read_text().splitlines()]
    assert lines[-1]["number"] == 1_999


def test_lines_below_its_level_are_left_out(tmp_path: Path) -> None:
    with head_log(tmp_path / "head.log", "warning") as log:
        log.info("not at this level")
        log.warning("the disk is nearly full", free=3)
    line = json.loads((tmp_path / "head.log").read_text())
    assert (line["event"], line["level"], line["free"]) == ("the disk is nearly full", "warning", 3)
    assert line["timestamp"].endswith("Z")


def test_one_line_cannot_exceed_the_bound_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "LINE_CHARACTERS", 1_000)
    with head_log(tmp_path / "head.log", "info") as log:
        log.info("tuner note", text="y" * 100_000, trial=3)
    line = json.loads((tmp_path / "head.log").read_text())
    assert len(line["text"]) < 1_100
    assert line["text"].endswith("99000 characters more")
    assert line["trial"] == 3


def test_what_rooms_warn_of_is_in_it_masked_and_not_on_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: no handler; it stays when the log is closed; the mask is passed by."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # as in a program of its own
    room = logging.getLogger("bequeath.backends.visited")

    def mask(text: str) -> str:
        return text.replace("hunter2", "***")

    with head_log(tmp_path / "head.log", "info", mask):
        room.warning("%s: does not let %s in", "gpu1", "hunter2")
        try:
            raise KeyError("boat")
        except KeyError as error:
            room.error("set aside", exc_info=error)
    assert logging.getLogger("bequeath").handlers == []
    first, second = map(json.loads, (tmp_path / "head.log").read_text().splitlines())
    assert (first["event"], first["level"]) == ("visited", "warning")
    assert first["text"] == "gpu1: does not let *** in"
    assert second["level"] == "error"
    assert "KeyError: 'boat'" in second["exception"]
    assert capsys.readouterr().err == ""
