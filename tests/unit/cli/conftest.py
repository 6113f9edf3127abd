"""The command line in this process, over a store that the real core has filled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from dispatcher.cli.main import PROGRAM, app
from tests.unit.queries.evolution import evolve, make_folder


class Said(NamedTuple):
    """What a command printed and returned."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Its answer, which must be one JSON document."""
        assert self.code == 0, self.err
        return json.loads(self.out)


class Shell:
    """Types commands; nobody looks at a terminal."""

    def __call__(self, *words: object, input: str | None = None) -> Said:
        result = CliRunner().invoke(
            app, [str(word) for word in words], input=input, prog_name=PROGRAM
        )
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Said(result.exit_code, result.stdout, result.stderr)


@pytest.fixture(scope="session")
def evolved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment of forty trials, for reading only."""
    folder = make_folder(tmp_path_factory.mktemp("base"))
    evolve(folder, 40)
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder for experiments, and no memory of others."""
    base = tmp_path / "experiments"
    base.mkdir()
    monkeypatch.setenv("BEQUEATH_HOME", str(base))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return base


@pytest.fixture
def bequeath(home: Path) -> Shell:
    """The command line over an empty home."""
    return Shell()


@pytest.fixture
def over(evolved: Path, bequeath: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The command line over the experiment of forty trials."""
    monkeypatch.setenv("BEQUEATH_HOME", str(evolved.parent))
    return bequeath
