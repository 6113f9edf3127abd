"""The functions of a trial without a dispatcher."""

from __future__ import annotations

import subprocess
import sys

import pytest

import trial_runtime as t
from trial_runtime import session
from trial_runtime.api_errors import ArtefactRefused, BrokenSession, NoSavePath
from trial_runtime.session_file import (
    SESSION_VARIABLE,
    SessionFile,
    read_session,
    write_session,
)


@pytest.fixture(autouse=True)
def by_hand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(SESSION_VARIABLE, raising=False)
    session.adopt(None)
    yield tmp_path
    session.adopt(None)


def test_reports_are_shown(capsys):
    assert t.get_parameters() == {}
    t.report_intermediate(0.5)
    t.report_final({"default": 1})
    assert capsys.readouterr().out == (
        '[bequeath] intermediate result 1: 0.5\n[bequeath] final result: {"default":1}\n'
    )
    assert (t.trial_id(), t.attempt(), t.should_stop()) == (0, 0, False)


def test_parameters_come_from_a_file(by_hand, monkeypatch):
    (by_hand / "p.json").write_text('{"lr": 0.1}')
    monkeypatch.setenv("BEQUEATH_PARAMETERS", "p.json")
    first = t.get_parameters()
    first["lr"] = 2
    assert t.get_next_parameter() == {"lr": 0.1}


def test_weights_stay_here(by_hand):
    numpy = pytest.importorskip("numpy")
    path = t.save_weights({"a": numpy.arange(3)})
    assert path.startswith(str(by_hand))
    assert t.load_weights() is None
    assert t.load_weights(path=path)["a"].tolist() == [0, 1, 2]


def test_a_parent_by_hand_is_what_lies_at_the_restore_path(by_hand, monkeypatch, capsys):
    """Mutations: a child starts from nothing without a word; it overwrites weights of its parent's
    experiment."""
    numpy = pytest.importorskip("numpy")
    kept = t.save_weights({"a": numpy.arange(3)}, path=by_hand / "kept")
    monkeypatch.setenv("BEQUEATH_PARAMETERS", "p.json")
    (by_hand / "p.json").write_text('{"restore_path": "kept", "save_path": "kept"}')
    session.adopt(None)
    child = {"a": numpy.zeros(3, dtype=int)}
    assert t.load_weights(into=child).missing == ()
    assert child["a"].tolist() == [0, 1, 2]
    assert t.save_weights({"a": numpy.zeros(1)}) != kept
    assert t.load_weights(path=kept)["a"].tolist() == [0, 1, 2]

    (by_hand / "p.json").write_text('{"restore_path": "trials/7"}')
    session.adopt(None)
    capsys.readouterr()
    assert t.load_weights() is None
    assert capsys.readouterr().out == (
        "[bequeath] no weights at 'trials/7': load_weights() returns None\n"
    )


@pytest.mark.parametrize(
    "path, words",
    [
        ("3", "restore_path is 3, and no path"),
        ('"s3://b/x"', "s3://b/x is on a store, which is not asked by hand"),
    ],
)
def test_a_parent_that_is_none_is_named(by_hand, monkeypatch, capsys, path, words):
    monkeypatch.setenv("BEQUEATH_PARAMETERS", "p.json")
    (by_hand / "p.json").write_text(f'{{"restore_path": {path}}}')
    assert t.load_weights() is None
    assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    "content, words",
    [
        (None, "cannot be read: No such file"),
        ("", "holds no JSON"),
        ("{x", "holds no JSON"),
        (b"\xff{}", "holds no JSON"),
    ],
)
def test_parameters_that_cannot_be_read_are_one_error(by_hand, monkeypatch, content, words):
    """Mutation: an error of the library that reads JSON, which names neither file nor variable."""
    monkeypatch.setenv("BEQUEATH_PARAMETERS", "p.json")
    if content is not None:
        raw = content if isinstance(content, bytes) else content.encode()
        (by_hand / "p.json").write_bytes(raw)
    with pytest.raises(BrokenSession) as raised:
        t.get_parameters()
    text = str(raised.value)
    assert text.startswith(f"p.json: BEQUEATH_PARAMETERS names a file that {words}")


def test_artefacts_are_confined(by_hand):
    path = t.save_artefact("plots/a.txt", b"hello")
    assert path == str(by_hand / "bequeath-by-hand/artefacts/plots/a.txt")
    assert t.save_artefact("copy", path).endswith("copy")
    for name in ("../x", "/etc/x", "", ".", "a/../../x"):
        with pytest.raises(ArtefactRefused):
            t.save_artefact(name, b"")


def test_seed_is_the_trials_own():
    seeds = set()
    for trial in range(100):
        for attempt in (1, 2):
            session.adopt(session.AgentSession(_file(trial=trial, attempt=attempt)))
            seeds.add(t.seed())
    assert len(seeds) == 100


def test_no_save_path():
    session.adopt(session.AgentSession(_file(weights_root="/w")))
    with pytest.raises(NoSavePath):
        t.save_weights({})


def test_checkpoint_dir_is_the_same_for_all_attempts(by_hand):
    paths = set()
    for attempt in (1, 2):
        folder = str(by_hand / "trials" / "3" / str(attempt))
        session.adopt(session.AgentSession(_file(trial=3, attempt=attempt, folder=folder)))
        paths.add(t.checkpoint_dir())
    assert paths == {str(by_hand / "trials" / "3" / "checkpoint")}


def test_session_files(by_hand, monkeypatch):
    path = str(by_hand / "s.json")
    write_session(path, _file(trial=4))
    assert (by_hand / "s.json").stat().st_mode & 0o777 == 0o600
    assert read_session(path) == _file(trial=4)
    (by_hand / "s.json").write_text('{"version": 9}')
    monkeypatch.setenv(SESSION_VARIABLE, path)
    with pytest.raises(BrokenSession, match="not a session file"):
        t.get_parameters()
    write_session(path, _file(version=9))
    with pytest.raises(BrokenSession, match="session version 9"):
        t.get_parameters()
    monkeypatch.setenv(SESSION_VARIABLE, path + "x")
    with pytest.raises(BrokenSession, match="cannot read"):
        t.get_parameters()


def test_importing_is_light():
    code = (
        "import sys, trial_runtime; trial_runtime.report_final\n"
        "heavy = {'torch', 'numpy', 'safetensors', 'blake3', 'asyncio', 'dispatcher', 'pydantic'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=_root()
    )
    assert done.stdout == "[]\n"


def test_unknown_names_are_named():
    with pytest.raises(AttributeError, match="no_such"):
        _ = t.no_such
    assert "report_final" in dir(t)


def _root() -> str:
    from pathlib import Path

    return str(Path(__file__).parents[3])


def _file(**changes) -> SessionFile:
    told = {
        "version": 1,
        "address": "",
        "routing": "",
        "trial": 0,
        "attempt": 1,
        "folder": "/f",
        "parameters": "{}",
        **changes,
    }
    return SessionFile(**told)


def test_a_shared_store_of_this_process_alone(capsys):
    store = t.shared_store("omega")
    assert (store.version, store.load()) == (0, None)
    assert store.publish({"a": 1}) == 1
    assert store.publish({"a": 2}, merge="mine") == 2
    assert store.load() == {"a": 2}
    assert "version 2 of omega" in capsys.readouterr().out
    with pytest.raises(ValueError, match="merge is one of changed, mine"):
        store.publish({}, merge="median")
