"""Pictures are drawn of any experiment, and what is missing is named."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import UserError
from dispatcher.plots.pictures import draw_lineage, draw_parallel, draw_progress
from dispatcher.queries import ExperimentReader
from dispatcher.store import SqliteJournal
from tests.unit.queries.evolution import evolve, make_folder

Draw = Callable[[ExperimentReader, Path], None]
ALL = [draw_progress, draw_parallel, draw_lineage]


@pytest.mark.parametrize("draw", ALL)
@pytest.mark.parametrize("trials", [0, 1, 2, 30])
def test_a_png_comes_out(tmp_path: Path, draw: Draw, trials: int) -> None:
    pytest.importorskip("matplotlib")
    folder = make_folder(tmp_path)
    if trials:
        evolve(folder, trials)
    else:
        SqliteJournal.open(folder / "journal.sqlite").close()
    picture = tmp_path / "picture.png"
    with ExperimentReader.open(folder) as reader:
        draw(reader, picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 3000


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_matplotlib(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    folder = make_folder(tmp_path)
    evolve(folder, 1)
    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with ExperimentReader.open(folder) as reader, pytest.raises(UserError) as caught:
        draw_progress(reader, tmp_path / "x.png")
    assert caught.value.hint == "pip install 'bequeath[plot]'"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder = make_folder(tmp_path)
    evolve(folder, 1)
    with (
        ExperimentReader.open(folder) as reader,
        pytest.raises(UserError, match="cannot be written"),
    ):
        draw_progress(reader, tmp_path / "no" / "x.png")
