"""Stores of searches that are over, written by the real core: as many trials as a plot may meet."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from dispatcher.store import SqliteJournal
from tests.unit.queries.evolution import make_folder
from tests.unit.store.life import Life

#: Parameters of a trial, its result (an object, or a number), and its parent.
Told = tuple[dict[str, Any], Any, int | None]


def made_store(base: Path, trials: Iterable[Told], id: str = "made-abc123", **config: Any) -> Path:
    """Write trials, each lived through from the tuner's answer to the end.

    Args:
        base: the folder of experiments.
        trials: in their order.
        id: of the experiment.
        **config: keys of its file; ``name`` is its name.
    """
    folder = make_folder(base, config.pop("name", "made"), id, **config)
    journal = SqliteJournal.open(folder / "journal.sqlite")
    life = Life(journal, trial_retries=0)
    life.begin()
    for number, (parameters, result, parent) in enumerate(trials):
        life.propose(number, parent, json.dumps({**parameters, "save_path": f"t/{number}"}))
        life.run(number, json.dumps(result))
        life.deliver(number)
    journal.close()
    return folder


def multiplied(folder: Path, times: int, change: Callable[[int, int], tuple[str, float]]) -> None:
    """Let a store hold so many times its trials, written into its tables at once.

    Args:
        folder: of an experiment.
        times: how often.
        change: of a trial and the round the parameters (JSON) and the result.
    """
    with sqlite3.connect(folder / "journal.sqlite") as connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(trials)")]
        rows = connection.execute("SELECT * FROM trials ORDER BY id").fetchall()
        at = {name: place for place, name in enumerate(names)}
        made = []
        for again in range(1, times):
            for row in rows:
                one = list(row)
                text, value = change(row[at["id"]], again)
                one[at["id"]] += again * len(rows)
                one[at["parent"]] = None
                one[at["parameters"]], one[at["number"]] = text, value
                one[at["told"]] = json.dumps(value)
                made.append(one)
        marks = ", ".join("?" * len(names))
        connection.executemany(f"INSERT INTO trials VALUES ({marks})", made)
    connection.close()
