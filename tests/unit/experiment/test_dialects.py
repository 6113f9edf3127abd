"""Dialects: found by entry point, ours first, and one that cannot be loaded harms nobody."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.errors import UserError
from dispatcher.experiment import dialects as dialects_module
from dispatcher.experiment import parse_experiment
from dispatcher.experiment.dialects import dialect_named, dialects, first_dialect

THEIRS = """\
from dispatcher.experiment.draft import Draft

class Lake:
    name = "lake"
    title = "Lake"
    annotation_hint = ""
    tuner_adapter = ""

    def version_of(self, values, folder):
        return "v7" if "boat" in values else ""

    def translate(self, values, version, origin):
        draft = Draft()
        draft.put(("trialCommand",), f"echo {values['boat']} {version}", ("boat",))
        draft.put(("trialConcurrency",), 1, ())
        draft.put(("tuner",), {"name": "Random"}, ())
        draft.put(("searchSpace",), {"x": {"_type": "choice", "_value": [1]}}, ())
        return draft

    def hint(self, section, key):
        return "boats have paddles" if key == "sail" else ""

LAKE = Lake()
"""


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that brings a dialect, and names two that it does not have."""
    there = tmp_path / "installed"
    info = there / "a_lake-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: a-lake\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[bequeath.dialects]\na = lake_dialect:LAKE\nbroken = lake_dialect:POND\n"
        "gone = lake_of_old.dialect:LAKE\n"
    )
    (there / "lake_dialect.py").write_text(THEIRS)
    monkeypatch.syspath_prepend(str(there))
    yield
    sys.modules.pop("lake_dialect", None)


def test_a_file_is_read_by_the_dialect_that_knows_it(lake: None, tmp_path: Path) -> None:
    assert parse_experiment("boat: kayak\n", "e.yml", tmp_path).trial_command == "echo kayak v7"


def test_a_key_of_any_dialect_gets_its_hint(lake: None, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="boats have paddles"):
        parse_experiment("sail: 1\n", "e.yml", tmp_path)


def test_ours_comes_first_and_broken_ones_are_left_out(
    lake: None, caplog: pytest.LogCaptureFixture
) -> None:
    """One whose package is gone was taken out on purpose. Mutation: they are in the order of names;
    a broken one ends the reading of any file."""
    assert [each.name for each in dialects()] == ["nni", "lake"]
    assert first_dialect("scripts").name == "nni"
    assert dialect_named("lake").title == "Lake"
    assert "the dialect broken cannot be loaded" in caplog.text
    assert "gone" not in caplog.text


def test_an_installation_without_dialects_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Mutation: a checkout that was installed too long ago takes a file of NNI's for a bad one of
    ours without a word."""
    monkeypatch.setattr(dialects_module, "entries_of", lambda group: ())
    monkeypatch.syspath_prepend("/another/path")  # what was read for this one is not kept
    assert dialects() == ()
    assert "install bequeath again" in caplog.text
    with pytest.raises(UserError, match="scripts cannot be run"):
        first_dialect("scripts")
    with pytest.raises(UserError, match="code written for 'nni' cannot be run"):
        dialect_named("nni")
