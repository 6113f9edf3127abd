"""The inheritance tree: who came from whom, and how it is drawn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from rich.cells import cell_len

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason
from dispatcher.plots.pictures.lineage_layout import lay_out
from dispatcher.queries import (
    ExperimentReader,
    Lineage,
    OptimizeMode,
    TrialNotFound,
    lineage,
    lineage_text,
)
from dispatcher.queries.lineages import LineageNode
from dispatcher.store import SqliteJournal
from tests.unit.queries.evolution import evolve, make_folder
from tests.unit.store.life import Life


@pytest.fixture
def small(tmp_path: Path) -> Iterator[ExperimentReader]:
    """0 → 1 → 3 (best), 0 → 2 (failed), 4 alone, 5 asked for."""
    folder = make_folder(tmp_path)
    journal = SqliteJournal.open(folder / "journal.sqlite")
    life = Life(journal, trial_retries=0)
    life.begin()
    life.whole(0, value="0.5")
    life.whole(1, parent=0, value="0.75")
    life.propose(2, parent=0)
    life.say(e.AttemptStarted(TrialId(2), 1))
    life.exit(2, 1, EndReason.FAILED)
    life.deliver(2)
    life.propose(3, parent=1, parameters='{"x": 1, "block": {"k": 3}, "save_path": "t/3"}')
    life.run(3, "0.9")
    life.deliver(3)
    life.whole(4, value="0.6")
    with ExperimentReader.open(folder) as reader:
        yield reader
    journal.close()


def test_the_tree(small: ExperimentReader) -> None:
    tree = lineage(small)
    assert tree.roots == (0, 4)
    assert tree.nodes[0].children == (1, 2)
    assert (tree.best, tree.best_path) == (3, (0, 1, 3))
    assert tree.generations == 3
    node = tree.nodes[3]
    assert node.inherited
    assert node.gain == pytest.approx(0.15)
    assert node.changed == {"block.k": 3}
    assert tree.nodes[2].outcome == "failed"
    assert [n.id for n in tree.walk()] == [0, 1, 3, 2, 4]
    assert 5 not in tree.nodes
    assert tree.to_json()["nodes"]["3"]["parent"] == 1


def test_a_subtree(small: ExperimentReader) -> None:
    tree = lineage(small, root=1)
    assert set(tree.nodes) == {1, 3}
    assert (tree.roots, tree.nodes[1].parent, tree.nodes[3].generation) == ((1,), None, 1)
    with pytest.raises(TrialNotFound):
        lineage(small, root=77)


def test_minimize_turns_gain_and_best_around(small: ExperimentReader) -> None:
    tree = lineage(small, mode=OptimizeMode.MINIMIZE)
    assert tree.best == 0
    assert tree.nodes[1].gain == -0.25


def test_as_text(small: ExperimentReader) -> None:
    assert lineage_text(lineage(small)) == (
        "0  0.5\n"
        "├─ 1  0.75 ▲0.25  x → 1\n"
        "│  └─ 3  0.9 ★ ▲0.15  block.k → 3\n"
        "└─ 2  failed  x → 2\n"
        "4  0.6\n"
    )


def test_of_a_list_only_the_entries_are_told_that_came_went_or_changed(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    journal = SqliteJournal.open(folder / "journal.sqlite")
    life = Life(journal, trial_retries=0)
    life.begin()
    blocks = [{"id": number, "width": 16, "kernel": {"size": 3}} for number in range(3)]
    grown = [blocks[0], {**blocks[1], "kernel": {"size": 5}}, {"id": 7, "width": 2}, blocks[2]]
    told = [
        {"blocks": blocks, "ops": ["conv", "pool"], "rate": 0.123456},
        {"blocks": grown, "ops": ["conv", "tanh"], "rate": 0.123456},
        {"blocks": grown[2:], "ops": "none", "rate": 0.2},
        {"blocks": [0] * 300, "ops": [], "rate": 0.2},
    ]
    for number, parameters in enumerate(told):
        parent = number - 1 if number else None
        life.propose(number, parent=parent, parameters=json.dumps(parameters))
        life.run(number, "0.5")
        life.deliver(number)
    with ExperimentReader.open(folder) as reader:
        tree = lineage(reader)
        text = lineage_text(tree, ascii_only=True)
    journal.close()
    assert [tree.nodes[number].changes for number in range(3)] == [
        (),
        ("blocks[1].kernel.size → 5", 'blocks + {"id": 7, "width": 2}', "ops[1] → tanh"),
        (
            'blocks - {"id": 0, "width": 16, "kernel": {"size": 3}}',
            'blocks - {"id": 1, "width": 16, "kernel": {"size": 5}}',
            "ops → none",
            "rate → 0.2",
        ),
    ]
    assert tree.nodes[3].changes == (f"blocks → {[0] * 300}", "ops → []")
    assert tree.nodes[1].changed["blocks"] == grown, "whole, for programs"
    assert "blocks[1].kernel.size -> 5, " in text
    assert text.isascii()


def test_as_plain_text_cut_to_the_terminal(small: ExperimentReader) -> None:
    lines = lineage_text(lineage(small), width=22, ascii_only=True).splitlines()
    assert lines[2] == "|  `- 3  0.9 * +0.1..."
    assert all(len(line) <= 22 and line.isascii() for line in lines)


def test_paint_adds_to_the_text_and_changes_no_width(small: ExperimentReader) -> None:
    painted = lineage_text(lineage(small), width=22, paint=lambda kind, text: f"<{kind}>{text}")
    assert "<best>3" in painted
    assert "<bad>  failed" in painted
    assert "<better> ▲0.25" in painted


def test_an_empty_experiment(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    SqliteJournal.open(folder / "journal.sqlite").close()
    with ExperimentReader.open(folder) as reader:
        tree = lineage(reader)
        assert lineage_text(tree) == "no trials yet\n"
        assert lay_out(tree).places == {}


def test_no_two_trials_share_a_place_and_no_lines_cross(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    evolve(folder, 150, seed=3, population=25)
    with ExperimentReader.open(folder) as reader:
        tree = lineage(reader)
    layout = lay_out(tree)
    assert set(layout.places) | set(layout.loners) == set(tree.nodes)
    columns: dict[float, list[tuple[float, int]]] = {}
    for trial, (column, row) in layout.places.items():
        assert 0 <= row <= layout.rows
        columns.setdefault(column, []).append((row, trial))
    for members in columns.values():
        members.sort()
        rows = [row for row, _ in members]
        assert all(b - a > 0.99 for a, b in pairwise(rows)), "trials overlap"
        parents = [tree.nodes[trial].parent for _, trial in members]
        heights = [layout.places[p][1] for p in parents if p is not None]
        assert heights == sorted(heights), "lines cross"
    trunk = {layout.places[trial][1] for trial in tree.best_path}
    assert max(trunk) - min(trunk) < 1e-6, "the way to the best is straight"


def _chain(length: int) -> Lineage:
    nodes = {
        i: LineageNode(
            i, i - 1 if i else None, (i + 1,) if i < length - 1 else (), i, "ended", "succeeded",
            None, None, i > 0, None, True, False, {},
        )
        for i in range(length)
    }  # fmt: skip
    return Lineage(OptimizeMode.MAXIMIZE, nodes, (0,), None, ())


def test_depth_is_no_limit() -> None:
    tree = _chain(5000)
    assert lay_out(tree).columns == 5000
    assert lineage_text(tree, width=60).count("\n") == 5000


def test_a_late_generation_shows_its_number() -> None:
    """Mutation: all branches are drawn. From the 27th generation on 80 columns show nothing else,
    and a pipe gets a gigabyte of a long search by PBT."""
    tree = _chain(5000)
    for width, ascii_only in ((80, False), (22, True)):
        lines = lineage_text(tree, width=width, ascii_only=ascii_only).splitlines()
        assert all(f" {n}" in line for n, line in enumerate(lines[1:], 1))
        assert all(len(line) <= width for line in lines)
    assert len(lineage_text(tree)) < 5000 * 150
    assert lineage_text(_chain(30)).splitlines()[-1] == f"{28 * 3 * ' '}└─ 29  no result"


def test_texts_of_trials_in_lines() -> None:
    """Mutations: characters are counted, not columns; escapes and new lines of a parameter reach
    the terminal of somebody who prints the tree."""
    tree = _chain(2)
    tree.nodes[1] = replace(tree.nodes[1], changes=("名 → " + "漢字🙂" * 50,))
    line = lineage_text(tree, width=40).splitlines()[1]
    assert 38 <= cell_len(line) <= 40
    assert line.endswith("…")
    tree.nodes[1] = replace(tree.nodes[1], changes=("x → \x1b[2J\n\u202e",))
    text = lineage_text(tree)
    assert text.count("\n") == 2
    assert text.replace("\n", "").isprintable()


def test_a_parent_may_have_been_asked_for_after_its_child(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    journal = SqliteJournal.open(folder / "journal.sqlite")
    life = Life(journal)
    life.begin()
    life.say(e.WaitStarted(TrialId(0), 1, (TrialId(1),)))
    life.whole(1, value="0.5")
    life.whole(0, parent=1, value="0.75")
    with ExperimentReader.open(folder) as reader:
        tree = lineage(reader)
    journal.close()
    assert (tree.roots, tree.nodes[0].parent, tree.nodes[0].generation) == ((1,), 1, 1)
    assert tree.best_path == (1, 0)
