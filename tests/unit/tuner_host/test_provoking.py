"""Threads yield between the lines of an author's code, and nowhere else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from dispatcher.tuner_host import provoking

#: An update that another thread can come into the middle of, many times.
UPDATES = """
def work(box):
    for _ in range(200):
        seen = box["count"]
        box["count"] = seen + 1
"""


def authors(folder: Path, text: str) -> dict[str, Any]:
    """The names of an author's module."""
    names: dict[str, Any] = {}
    exec(compile(text, str(folder / "mine.py"), "exec"), names)
    return names


def test_another_thread_gets_between_a_read_and_its_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: nobody yields; only calls yield, not lines."""
    box = {"count": 0, "by_others": 0}

    def others(_: float) -> None:
        box["count"] += 1
        box["by_others"] += 1

    monkeypatch.setattr(provoking.time, "sleep", others)
    work = authors(tmp_path, UPDATES)["work"]
    before = sys.gettrace()
    provoking.provoked(lambda: work(box), seed=1)
    assert sys.gettrace() is before
    assert 5 < box["by_others"] < 50, "often, and not for long"
    assert box["count"] < 200 + box["by_others"], "some updates of others are lost"


def test_libraries_and_bequeath_itself_are_not_slowed_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    yielded: list[float] = []
    monkeypatch.setattr(provoking.time, "sleep", yielded.append)
    text = "import json\nbig = [{'a': [1]}] * 300\nwork = lambda: json.dumps(big, indent=1)"
    assert provoking.provoked(authors(tmp_path, text)["work"], seed=1).startswith("[")
    assert len(yielded) <= 1, "the author's one line"


def test_the_same_seed_yields_at_the_same_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = authors(tmp_path, UPDATES)["work"]

    def counts(seed: int) -> list[int]:
        box = {"count": 0}
        seen: list[int] = []
        monkeypatch.setattr(provoking.time, "sleep", lambda _: seen.append(box["count"]))
        provoking.provoked(lambda: work(box), seed)
        return seen

    assert counts(1) == counts(1) != counts(2)
