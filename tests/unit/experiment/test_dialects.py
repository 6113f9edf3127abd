"""Dialects: found by entry point, ours first, and one that cannot be loaded harms nobody."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.errors import PermanentBackendError, UserError
from dispatcher.experiment import dialects as dialects_module
from dispatcher.experiment import parse_experiment
from dispatcher.experiment.dialects import dialect_named, dialects, first_dialect
from dispatcher.experiment.entry_points import entries_of
from tests.support.packages import lay_down

PLAIN = """\
tuner: {name: Random}
searchSpace: {x: {_type: choice, _value: [1]}}
trialCommand: "true"
trialConcurrency: 3
"""
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
    points = (
        "[bequeath.dialects]\na = lake_dialect:LAKE\n"
        "broken = lake_dialect:POND\n"
        "gone = lake_of_old.dialect:LAKE\n"
    )
    lay_down(there, "a-lake", points)
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
    ours, (theirs,) = {each.name for each in dialects()[:-1]}, dialects()[-1:]
    assert (ours, theirs.name) == ({"nni", "katib", "ai-platform", "vertex-ai"}, "lake")
    assert first_dialect("scripts").name == "nni"
    assert dialect_named("lake").title == "Lake"
    assert "the dialect broken of 'a-lake' cannot be loaded: AttributeError" in caplog.text
    assert "gone" not in caplog.text


@pytest.mark.parametrize(
    "code, said",
    [
        ("LAKE = None", "the dialect a of 'a-lake' cannot be loaded: AttributeError: 'NoneType'"),
        ("LAKE = type('L', (), {'name': 1})", "of 'a-lake' cannot be loaded"),
        ("LAKE = type('L', (), {'name': 'a', 'version_of': 1})", "lake_dialect:LAKE is no dialect"),
        ("1 / 0", "the dialect a of 'a-lake' cannot be loaded: ZeroDivisionError"),
        ("import gone_for_ever", "the dialect a is not there: No module named 'gone_for_ever'"),
        (
            "del Lake.version_of, Lake.hint; Lake.version_of = lambda *x: 1 / 0; LAKE = Lake()",
            "the dialect 'lake' fails at 'version_of': ZeroDivisionError: division by zero; report "
            "it to the authors of 'a-lake'",
        ),
        ("Lake.hint = lambda *x: 1 / 0; LAKE = Lake()", "the dialect 'lake' fails at 'hint'"),
        ("Lake.name = 'nni'; LAKE = Lake()", "'a-lake' brings a second dialect 'nni'"),
    ],
)
def test_a_dialect_that_is_no_good_harms_no_plain_file(
    lake: None, tmp_path: Path, caplog: pytest.LogCaptureFixture, code: str, said: str
) -> None:
    """Files without a slip and with one: it is asked about both. Mutation: whatever the package
    raises is a fault of ours, in every file of this machine."""
    (tmp_path / "installed" / "lake_dialect.py").write_text(f"{THEIRS}\n{code}\n")
    parse_experiment(PLAIN, "e.yml", tmp_path)
    with pytest.raises(UserError, match=r"e\.yml:1:1: unknown key 'sails'"):
        parse_experiment(f"sails: 1\n{PLAIN}", "e.yml", tmp_path)
    assert said in caplog.text
    assert dialect_named("nni").title == "NNI"


def test_our_words_are_ours_whatever_a_package_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry point that names a module of ours is not ours for that. Mutation: it comes first."""
    lay_down(tmp_path / "installed", "a-lake", "[bequeath.dialects]\na = dispatcher.nni.gone:NNI\n")
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    values = [each.value for each in entries_of("bequeath.dialects")]
    assert values[-1] == "dispatcher.nni.gone:NNI"
    assert "dispatcher.nni.dialect:NNI" in values[:-1]


def test_a_file_in_a_dialect_that_cannot_read_it_names_the_package(
    lake: None, tmp_path: Path
) -> None:
    code = "Lake.translate = lambda *x: 1 / 0"
    (tmp_path / "installed" / "lake_dialect.py").write_text(f"{THEIRS}\n{code}\n")
    with pytest.raises(PermanentBackendError, match="'lake' fails at 'translate'") as raised:
        parse_experiment("boat: kayak\n", "e.yml", tmp_path)
    assert raised.value.hint == "report it to the authors of 'a-lake'"


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
