"""A made-up evolution, written into a real store by the real core."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason
from dispatcher.store import SqliteJournal
from tests.unit.store.life import Life

#: Trials of a store that is kept in memory for the next test.
MOST_KEPT = 150


def make_folder(base: Path, name: str = "digits", id: str = "digits-abc123", **config: Any) -> Path:
    """An experiment's folder with its resolved file and an empty store."""
    folder = base / id
    folder.mkdir(parents=True)
    body = {"experimentName": name, "optimizeMode": "maximize", "trialConcurrency": 2, **config}
    text = json.dumps({"snapshotVersion": 1, "experiment": body})
    (folder / "experiment.json").write_text(text)
    return folder


def evolve(folder: Path, trials: int, seed: int = 1, sample: int = 4, population: int = 12) -> None:
    """Aging evolution on a smooth hill; every twelfth trial fails, every twentieth is random."""
    store = folder / "journal.sqlite"
    if trials <= MOST_KEPT and not store.exists():
        store.write_bytes(_evolved(trials, seed, sample, population))
    else:
        _evolve(store, trials, seed, sample, population)


@cache
def _evolved(*how: int) -> bytes:
    """A store of one file, made once: hundreds of tests begin with the same ones."""
    with TemporaryDirectory() as folder:
        store = Path(folder, "journal.sqlite")
        _evolve(store, *how)
        assert [path.name for path in store.parent.iterdir()] == [store.name]
        return store.read_bytes()


def _evolve(store: Path, trials: int, seed: int, sample: int, population: int) -> None:
    draw = random.Random(seed)
    journal = SqliteJournal.open(store)
    life = Life(journal, trial_retries=0)
    life.begin()
    alive: list[tuple[int, float, dict[str, Any]]] = []
    for trial in range(trials):
        parent: int | None = None
        if len(alive) < population // 2 or draw.random() < 0.05:
            genes = {
                "depth": draw.randint(1, 6),
                "width": draw.choice([16, 32, 64, 128]),
                "lr": 10 ** draw.uniform(-4, -1),
                "act": draw.choice(["relu", "gelu", "tanh"]),
            }
            base = 0.75
        else:
            parent, base, old = max(draw.sample(alive, min(sample, len(alive))), key=lambda a: a[1])
            genes = dict(old)
            match draw.choice(["depth", "width", "lr", "act"]):
                case "depth":
                    genes["depth"] = max(1, min(6, genes["depth"] + draw.choice([-1, 1])))
                case "width":
                    genes["width"] = draw.choice([16, 32, 64, 128])
                case "lr":
                    genes["lr"] = min(0.1, max(1e-4, genes["lr"] * 10 ** draw.uniform(-0.4, 0.4)))
                case _:
                    genes["act"] = draw.choice(["relu", "gelu", "tanh"])
        value = base + (0.985 - base) * draw.uniform(-0.25, 0.35)
        life.now += draw.uniform(5, 60)
        life.propose(trial, parent, json.dumps({**genes, "save_path": f"t/{trial}"}))
        life.now += draw.uniform(20, 90)
        if trial % 12 == 11:
            life.say(e.AttemptStarted(TrialId(trial), 1, 4000 + trial))
            life.exit(trial, 1, EndReason.FAILED, text="Traceback: out of luck")
        else:
            life.run(trial, f"{value:.4f}")
            alive.append((trial, value, genes))
            alive = alive[-population:]
        life.deliver(trial)
    journal.close()
