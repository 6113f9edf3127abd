"""Pictures are drawn of any experiment, from the numbers that the page gets, and what is missing is
named."""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import UserError
from dispatcher.plots.kinds import KINDS, data_of
from dispatcher.plots.pictures import draw
from dispatcher.plots.shapes import Plot
from dispatcher.queries import ExperimentReader
from dispatcher.store import SqliteJournal
from tests.support.made_store import Told, made_store
from tests.unit.queries.evolution import evolve, make_folder

FRONTS = ("pareto", "hypervolume")
EVERY = ("progress", "lineage", *KINDS)


def demand_libraries(kind: str) -> None:
    pytest.importorskip("matplotlib")
    if kind == "importance":
        pytest.importorskip("sklearn")


@pytest.mark.parametrize("kind", [kind for kind in EVERY if kind not in FRONTS])
@pytest.mark.parametrize("trials", [0, 1, 2, 30])
def test_a_png_comes_out(tmp_path: Path, kind: str, trials: int) -> None:
    demand_libraries(kind)
    folder = of_one_objective(tmp_path, trials)
    picture = tmp_path / "picture.png"
    with ExperimentReader.open(folder) as reader:
        draw(reader, kind, picture, {})
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 3000


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_is_drawn_from_what_the_page_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Mutation: a painter that reads, or computes, by itself."""
    demand_libraries(kind)
    folder = of_two_objectives(tmp_path, 30) if kind in FRONTS else make_folder(tmp_path)
    if kind not in FRONTS:
        evolve(folder, 30)
    module = importlib.import_module("dispatcher.plots.pictures.draw")
    drawn: list[Plot] = []

    def told(reader: ExperimentReader, kind: str, choice: Mapping[str, Any]) -> Plot:
        drawn.append(data_of(reader, kind, choice))
        reader.close()  # whoever draws has no store any more
        return drawn[-1]

    choice = {"seed": 3, "x": "lr", "objectives": ("default", "size:minimize")}
    with ExperimentReader.open(folder) as reader:
        expected = data_of(reader, kind, choice)
        monkeypatch.setattr(module, "data_of", told)
        draw(reader, kind, tmp_path / "picture.png", choice)
    assert drawn == [expected]


def of_one_objective(base: Path, trials: int) -> Path:
    folder = make_folder(base)
    if trials:
        evolve(folder, trials)
    else:
        SqliteJournal.open(folder / "journal.sqlite").close()
    return folder


def of_two_objectives(folder: Path, trials: int) -> Path:
    told: list[Told] = [
        ({"lr": at}, {"default": at, "size": at % 7 + 1}, None) for at in range(trials)
    ]
    return made_store(folder, told)


@pytest.mark.parametrize("kind", FRONTS)
@pytest.mark.parametrize("trials", [1, 2, 30])
def test_a_front_of_two_objectives_is_drawn(tmp_path: Path, kind: str, trials: int) -> None:
    demand_libraries(kind)
    picture = tmp_path / "picture.png"
    with ExperimentReader.open(of_two_objectives(tmp_path, trials)) as reader:
        draw(reader, kind, picture, {"objectives": ("default", "size:minimize")})
    assert picture.stat().st_size > 3000


@pytest.mark.parametrize("kind", FRONTS)
@pytest.mark.parametrize("trials", [0, 5])
def test_a_front_of_one_objective_is_refused(tmp_path: Path, kind: str, trials: int) -> None:
    """The page has its note instead. Mutation: an empty picture."""
    demand_libraries(kind)
    folder = of_one_objective(tmp_path, trials)
    picture = tmp_path / "picture.png"
    with ExperimentReader.open(folder) as reader:
        with pytest.raises(
            UserError, match="of 2 to 6 objectives, and the experiment has one"
        ) as no:
            draw(reader, kind, picture, {})
        assert "name several" in data_of(reader, kind, {}).notes[0]
    assert "--objective" in no.value.hint
    assert no.value.exit_code == 3
    assert not picture.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_names_are_drawn_as_text(tmp_path: Path, kind: str) -> None:
    demand_libraries(kind)
    evil = "$\\frac{1}{0}$\x1b[2J\u202e\n漢字" + "x" * 190
    trials: list[Told] = []
    for at in range(20):
        own = {evil: at, "b": evil if at % 2 else "$", "c": {"d": at**2}}
        trials.append((own, {"default": at, evil[:99]: 1}, None))
    folder = made_store(tmp_path, trials, name=evil)
    with ExperimentReader.open(folder) as reader:
        choice = {"objectives": ("default", evil[:99])}
        draw(reader, kind, tmp_path / "picture.png", choice)
    assert (tmp_path / "picture.png").stat().st_size > 3000


def texts_of(
    monkeypatch: pytest.MonkeyPatch, reader: ExperimentReader, kind: str, path: Path, **choice: Any
) -> str:
    """All that is written in a picture."""
    from matplotlib.text import Text

    figures: list[Any] = []
    with monkeypatch.context() as patched:
        patched.setattr(
            "matplotlib.figure.Figure.savefig", lambda one, *_, **__: figures.append(one)
        )
        draw(reader, kind, path, choice)
    return "\n".join(one.get_text() for one in figures[0].findobj(Text))


def test_a_lineage_without_a_parent_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: dots without a line, thousands of them."""
    demand_libraries("lineage")
    picture = tmp_path / "picture.png"
    alone: list[Told] = [({"a": at}, {"default": at}, None) for at in range(3)]
    with ExperimentReader.open(made_store(tmp_path / "alone", alone)) as reader:
        assert "nothing inherited: no trial has a parent" in texts_of(
            monkeypatch, reader, "lineage", picture
        )
    folder = made_store(tmp_path / "kin", [*alone, ({"a": 7}, {"default": 7}, 0)])
    with ExperimentReader.open(folder) as reader:
        assert "with inherited weights" in texts_of(monkeypatch, reader, "lineage", picture)
        assert "nothing inherited from this trial" in texts_of(
            monkeypatch, reader, "lineage", picture, root=2
        )


def test_lines_that_are_a_part_of_all_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demand_libraries("parallel")
    monkeypatch.setattr("dispatcher.plots.parallel.MOST_LINES", 20)
    monkeypatch.setattr("dispatcher.plots.sampling.MOST_TRIALS", 30)
    monkeypatch.setattr("dispatcher.plots.choosing.MOST_TRIALS", 30)
    trials: list[Told] = [({"a": at, "b": at % 3}, {"default": at}, None) for at in range(50)]
    with ExperimentReader.open(made_store(tmp_path, trials)) as reader:
        told = texts_of(monkeypatch, reader, "parallel", tmp_path / "picture.png")
    assert "20 of 50 trials" in told
    assert "30 of 50 results" in told


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
        draw(reader, "progress", tmp_path / "x.png", {})
    assert caught.value.hint == "pip install 'bequeath[plot]'"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder = make_folder(tmp_path)
    evolve(folder, 1)
    with (
        ExperimentReader.open(folder) as reader,
        pytest.raises(UserError, match="cannot be written"),
    ):
        draw(reader, "progress", tmp_path / "no" / "x.png", {})


def test_a_file_with_the_ending_of_another_format(tmp_path: Path) -> None:
    """``Experiment.plot`` wrote a PNG that was called x.pdf."""
    folder = make_folder(tmp_path)
    evolve(folder, 1)
    with (
        ExperimentReader.open(folder) as reader,
        pytest.raises(UserError, match=r"x\.pdf: pictures are PNG"),
    ):
        draw(reader, "progress", tmp_path / "x.pdf", {})


def test_a_kind_that_is_not_there(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    evolve(folder, 1)
    with (
        ExperimentReader.open(folder) as reader,
        pytest.raises(UserError, match="there is no plot 'pie'"),
    ):
        draw(reader, "pie", tmp_path / "x.png", {})
