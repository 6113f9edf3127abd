"""Sixty classifiers of digits evolve on three machines, and by the same file on this one."""

from __future__ import annotations

import gzip
import importlib.util
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dispatcher.core import events as e
from tests.integration.machines.conftest import CODE, POINT, ROOT, Lab
from tests.support.ssh_hosts import why_not

pytestmark = [
    pytest.mark.needs("sshd"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

TRIALS, FOUNDERS = 60, 6


def code_of(folder: Path) -> Path:
    """The trial, its tuner and its data, in a folder of their own."""
    folder.mkdir()
    for path in (ROOT / "tests/system/nfs/digits").glob("*.py"):
        shutil.copy(path, folder)
    shutil.copy(CODE / "plain_digits.py", folder)
    sklearn = importlib.util.find_spec("sklearn")
    assert sklearn is not None
    assert sklearn.origin is not None
    with gzip.open(Path(sklearn.origin).parent / "datasets/data/digits.csv.gz") as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.uint8)
    np.savez(folder / "digits.npz", pixels=table[:, :-1], digits=table[:, -1])
    return folder


def born(folder: Path) -> list[tuple[int, int | None, float]]:
    """Trial, parent and result of all."""
    with sqlite3.connect(f"file:{folder / 'journal.sqlite'}?mode=ro", uri=True) as store:
        return store.execute("SELECT id, parent, number FROM trials").fetchall()


def test_sixty_digits_on_three_hosts_and_by_the_same_file_here(lab: Lab) -> None:
    """Mutation: a child is started before its parent's weights can be read where it goes."""
    code = code_of(lab.base / "digits")
    file: dict[str, Any] = {
        "tuner": {
            "className": "digits_tuner:Evolution",
            "codeDirectory": str(code),
            "classArgs": {"founders": FOUNDERS},
        },
        "trialFunction": "plain_digits:main",
        "trialCodeDirectory": str(code),
        "trialEnvironment": {
            "DIGITS": "digits.npz",
            "HOSTS": "-",
            "GO": f"{POINT}/{lab.base.name}/go",
        },
        "maxTrialNumber": TRIALS,
    }
    warm = {"reuseMode": "inProcess", "preload": ["numpy"]}
    folder = lab.create(lab.service("h1", "h2", "h3", **warm), **file)
    head = lab.lead(folder)
    started = lambda: lab.events(folder, e.AttemptStarted)  # noqa: E731
    lab.until(lambda: len(started()) >= FOUNDERS, "six run, two on each", folder)
    (lab.share / lab.base.name / "go").touch()
    lab.finish(folder, head)
    here = lab.create({"platform": "local", **warm}, **file)
    lab.finish(here, lab.lead(here))

    for each in (folder, here):
        results = {trial: value for trial, _, value in born(each)}
        assert len(results) == TRIALS
        assert {end.reason.value for end in lab.events(each, e.AttemptEnded)} == {"finished"}
        assert max(results.values()) >= max(results[trial] for trial in range(FOUNDERS))
        assert max(results.values()) > 0.85
    ran = lab.ended_on(folder)
    assert set(ran.values()) == {"h1", "h2", "h3"}
    inherited = [(child, parent) for child, parent, _ in born(folder) if parent is not None]
    assert len(inherited) == TRIALS - FOUNDERS
    assert any(ran[child] != ran[parent] for child, parent in inherited)
    assert set(lab.ended_on(here).values()) == {"local"}
