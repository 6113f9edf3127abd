"""Where sockets are: for every head of an experiment in the same place."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.folders.experiment_folder import run_folder


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a head that was started at a terminal."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "terminal"))
    (tmp_path / "terminal").mkdir()
    (tmp_path / "service").mkdir()
    return run_folder(tmp_path / "experiment")


def test_the_next_head_listens_where_agents_look(
    terminal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its own environment says. Mutation: ``before`` is not looked at."""
    assert terminal.is_relative_to(tmp_path / "terminal")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "service"))
    assert run_folder(tmp_path / "experiment", before=str(terminal)) == terminal
    assert run_folder(tmp_path / "experiment").is_relative_to(tmp_path / "service")


@pytest.mark.parametrize("what", ["gone", "open to others", "a link"])
def test_a_folder_that_cannot_be_trusted_is_not_taken(
    what: str, terminal: Path, tmp_path: Path
) -> None:
    before = tmp_path / "before"
    if what == "open to others":
        before.mkdir()
        before.chmod(0o755)
    elif what == "a link":
        before.symlink_to(terminal)
    assert run_folder(tmp_path / "experiment", before=str(before)) == terminal
