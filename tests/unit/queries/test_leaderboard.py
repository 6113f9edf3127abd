"""Boards: what can be compared stands together, seeds of one name beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dispatcher import queries
from dispatcher.folders.status import ExperimentStatus
from dispatcher.queries import BoardFilter, BoardGroup, ExperimentListing, OptimizeMode
from dispatcher.store.notes import OF_EXPERIMENT, Annotations
from tests.unit.queries.evolution import evolve, make_folder


def one(ident: str, value: float | None, mode: str = "maximize", **more: Any) -> ExperimentListing:
    return ExperimentListing(
        id=ident, name=more.pop("name", ident), folder=f"/e/{ident}",
        status=ExperimentStatus.COMPLETED, created_at=1.0, last_event_at=2.0, trials=3,
        best_trial=None if value is None else 2, best_value=value, mode=OptimizeMode(mode), **more,
    )  # fmt: skip


def places(boards: tuple[queries.Board, ...]) -> dict[str, list[tuple[int, str]]]:
    return {
        f"{board.group} {board.mode}": [
            (each.place, each.experiment.id) for each in board.experiments
        ]
        for board in boards
    }


FOUND = [
    one("a", 0.5, dataset="cifar", tuner="TPE", tags=("good",), cpu_s=3.0, seed=2, name="s"),
    one("b", 0.9, dataset="cifar", tuner="Random", starred=True, tags=("good", "old")),
    one("c", 0.7, dataset="cifar", tuner="TPE", cpu_s=4.0, seed=1, name="s"),
    one("d", 0.7, dataset="mnist"),
    one("e", 0.1, "minimize", dataset="cifar"),
    one("f", 0.3, "minimize", dataset="cifar"),
    one("g", None, dataset="cifar"),
    one("h", 0.6, dataset="cifar", tuner="TPE", cpu_s=5.0, name="s"),
    one("i", 0.7),
    one("j", 99.0, dataset="cifar", problem="damaged"),
]


def test_values_of_two_directions_never_stand_beside_each_other() -> None:
    """Mutations: one order for both directions; those without a data set first; a board of what
    has no result."""
    assert places(queries.leaderboard(FOUND)) == {
        "cifar maximize": [(1, "b"), (2, "c"), (3, "h"), (4, "a")],
        "cifar minimize": [(1, "e"), (2, "f")],
        "mnist maximize": [(1, "d")],
        " maximize": [(1, "i")],
    }
    assert [*places(queries.leaderboard(FOUND))][-1] == " maximize"


def test_a_limit_is_of_each_board_and_names_keep_all_runs() -> None:
    """Mutation: a median of those only that are shown."""
    boards = queries.leaderboard(FOUND, limit=1)
    assert places(boards)["cifar maximize"] == [(1, "b")]
    assert places(boards)["mnist maximize"] == [(1, "d")]
    (runs,) = [each for each in boards[0].names if each.name == "s"]
    assert runs.runs == 3


def test_equal_values_share_the_better_place() -> None:
    (board, _) = queries.leaderboard(FOUND, BoardGroup.NONE)
    assert [(each.place, each.experiment.id) for each in board.experiments] == [
        (1, "b"), (2, "c"), (2, "d"), (2, "i"), (5, "h"), (6, "a")
    ]  # fmt: skip


def test_seeds_of_one_name_stand_beside_each_other() -> None:
    board = queries.leaderboard(FOUND)[0]
    assert [(named.name, named.runs) for named in board.names] == [("b", 1), ("s", 3)]
    seeds = board.names[1]
    assert (seeds.best, seeds.median, seeds.worst) == (0.7, 0.6, 0.5)
    assert (seeds.seeds, seeds.cpu_s, seeds.experiments) == ((1, 2), 12.0, ("c", "h", "a"))
    assert queries.leaderboard(FOUND[4:6])[0].names[0].worst == 0.1


@pytest.mark.parametrize(
    "group,expected",
    [
        (BoardGroup.TAG, {"good": "ba", "old": "b", "": "cdihef"}),
        (BoardGroup.TUNER, {"Random": "b", "TPE": "cha", "": "dief"}),
        (BoardGroup.NAME, {"s": "cha", "b": "b"}),
    ],
)
def test_experiments_are_grouped(group: BoardGroup, expected: dict[str, str]) -> None:
    found: dict[str, str] = {}
    for board in queries.leaderboard(FOUND, group):
        found[board.group] = found.get(board.group, "") + "".join(
            each.experiment.id for each in board.experiments
        )
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    "wanted,expected",
    [
        (BoardFilter(dataset="mnist"), "d"),
        (BoardFilter(tuner="tpe"), "cha"),
        (BoardFilter(tag="good"), "ba"),
        (BoardFilter(tag="goo"), ""),
        (BoardFilter(starred=True), "b"),
        (BoardFilter(name="S", tag="good"), "a"),
    ],
)
def test_experiments_are_chosen(wanted: BoardFilter, expected: str) -> None:
    boards = queries.leaderboard(FOUND, BoardGroup.NONE, wanted)
    assert "".join(each.experiment.id for board in boards for each in board.experiments) == expected


def test_an_experiment_says_what_it_is_about(tmp_path: Path) -> None:
    """The file's key, and a tag above it. Mutation: the tag is asked last."""
    folder = make_folder(tmp_path, dataset="cifar10", tuner={"name": "TPE"}, seed=7)
    evolve(folder, 6)
    (listed,) = queries.experiments(tmp_path)
    assert (listed.dataset, listed.tuner, listed.seed) == ("cifar10", "TPE", 7)
    assert (listed.trials, listed.cpu_s > 0) == (6, True)
    kept = Annotations.open(folder / "journal.sqlite")
    kept.change_tags(OF_EXPERIMENT, ["a", "dataset:", "dataset:cifar-10"], [])
    kept.star(OF_EXPERIMENT, starred=True)
    kept.add_note(OF_EXPERIMENT, "x")
    kept.close()
    (listed,) = queries.experiments(tmp_path)
    assert (listed.dataset, listed.starred) == ("cifar-10", True)
    with queries.ExperimentReader.open(folder) as reader:
        summary = queries.experiment_summary(reader)
    assert (summary.dataset, summary.tuner) == ("cifar-10", "TPE")
    assert (summary.tags, summary.starred) == (listed.tags, True)
    assert [note.text for note in summary.notes] == ["x"]
    other = make_folder(tmp_path, id="strange", dataset=["x"], tuner="what", seed="y")
    evolve(other, 1)
    with queries.ExperimentReader.open(other) as reader:
        summary = queries.experiment_summary(reader)
    assert (summary.dataset, summary.tuner) == ("", "")
