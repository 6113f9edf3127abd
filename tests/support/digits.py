"""Evolution of digit classifiers: an experiment of a real head, and what became of it."""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dispatcher.core import events as e
from tests.support.checker import check_store, read_store

ROOT = Path(__file__).parents[2]
CODE = ROOT / "tests/system/nfs/digits"
HELD = ROOT / "tests/support/held"
TRIALS = 60


class Digits:
    """One experiment on a service.

    Args:
        folder: for its files.
        service: what stands below ``trainingService``, or several of them.
        weights: a folder that this machine and all workers see.
        environment: variables of the head beside ours.
    """

    def __init__(
        self,
        folder: Path,
        service: dict[str, Any] | list[dict[str, Any]],
        weights: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.said = folder / "said"
        self.head: subprocess.Popen[bytes] | None = None
        self._environment = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
        self.allowed = weights / "allowed"
        several = service if isinstance(service, list) else [service]
        usual = {"slots": 1, "reuseMode": "inProcess", "preload": ["numpy"]}
        folder.mkdir(parents=True, exist_ok=True)
        self.allow(0)
        (weights / "hosts").mkdir()
        for host in ("one", "two"):  # founders wait for another host elsewhere
            (weights / "hosts" / f"{host}.1").touch()
        spec = importlib.util.find_spec("sklearn")
        assert spec is not None
        assert spec.origin is not None
        with gzip.open(Path(spec.origin).parent / "datasets/data/digits.csv.gz") as file:
            table = np.loadtxt(file, delimiter=",", dtype=np.uint8)
        np.savez(weights / "digits.npz", pixels=table[:, :-1], digits=table[:, -1])
        experiment = {
            "experimentName": "digits",
            "experimentWorkingDirectory": str(folder / "experiments"),
            "tuner": {"className": "digits_tuner:Evolution", "codeDirectory": str(CODE)},
            "trialFunction": "held_digits:main",
            "trialCodeDirectory": str(HELD),
            "trialEnvironment": {
                "DIGITS_CODE": str(CODE),
                "ALLOWED": str(self.allowed),
                "DIGITS": str(weights / "digits.npz"),
                "HOSTS": str(weights / "hosts"),
            },
            "trialConcurrency": max(2, len(several)),
            "maxTrialNumber": TRIALS,
            "weightsRoot": str(weights / "nas"),
            "lostRetries": 100,
            "headGrace": "60s",
            "trialStopGrace": "2s",
            "seed": 7,
            "debug": True,
            "trainingService": [{**usual, **each} for each in several],
        }
        self.file = folder / "digits.yml"
        self.file.write_text(json.dumps(experiment))

    def allow(self, trials: int) -> None:
        """Let so many trials end, and one more, whichever they are; the next ones are trained, and
        wait."""
        new = self.allowed.with_suffix(".new")
        new.write_text(str(trials))
        new.replace(self.allowed)

    def lead(self, *words: str) -> None:
        """Start a head, which runs the file, or does what ``words`` say; one that leads is killed
        first."""
        self.kill()
        command = [sys.executable, "-m", "dispatcher.cli", *(words or ("run", str(self.file)))]
        with self.said.open("ab") as said:
            self.head = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill the head and what it runs here, at once."""
        if self.head is not None and self.head.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.head.pid, signal.SIGKILL)
            self.head.wait()

    def resume(self) -> None:
        """Lead it again, after :meth:`kill`."""
        self.lead("resume", "--folder", str(self.folder / "experiments"))

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run ``bequeath trial …``, as a user does beside the head."""
        of = ["--folder", str(self.folder / "experiments")]
        return subprocess.run(
            [sys.executable, "-m", "dispatcher.cli", "trial", *words[:2], *of, *words[2:]],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def done(self) -> int:
        """How many trials have reported their result, as the journal has it."""
        assert self.head is not None
        assert self.head.poll() in (None, 0), self.text()
        try:
            return len({x.trial for x in self.events() if isinstance(x, e.FinalReported)})
        except (sqlite3.Error, ValueError):  # it is being made
            return 0

    def text(self) -> str:
        """What the heads have said."""
        return self.said.read_text(errors="replace")[-6000:]

    @property
    def journal(self) -> Path:
        """The journal; raises ``ValueError`` while there is none."""
        (path,) = (self.folder / "experiments").glob("*/journal.sqlite")
        return path

    def events(self) -> list[e.Event]:
        """All that the journal has."""
        return [row.event for row in read_store(self.journal)]

    def ends_well(self, limit_s: float) -> None:
        """The head ends with success, no promise was broken, and children are better."""
        assert self.head is not None
        assert self.head.wait(limit_s) == 0, self.text()
        assert check_store(self.journal, over=True) == []
        results = {x.trial for x in self.events() if isinstance(x, e.FinalReported)}
        assert len(results) == TRIALS, "no result is lost, and none is there twice"
        with contextlib.closing(sqlite3.connect(self.journal)) as store:
            born = store.execute("SELECT id, parent, number FROM trials").fetchall()
        assert any(parent is not None for _, parent, _ in born), "children inherit"
        values = {trial: value for trial, _, value in born}
        assert max(values.values()) > 0.85, values

    def running(self) -> dict[str, tuple[int, int]]:
        """Worker → the trial that runs there now, and the number of its process there."""
        over = {x.trial for x in self.events() if isinstance(x, e.FinalReported)}
        question = "SELECT trial, worker, pid FROM attempts WHERE started_at > 0 ORDER BY attempt"
        with contextlib.closing(sqlite3.connect(self.journal)) as store:
            last = {row[0]: row for row in store.execute(question)}
        return {where: (trial, pid) for trial, where, pid in last.values() if trial not in over}

    def losses(self) -> list[e.WorkerLost]:
        """The workers that were lost, and how."""
        return [x for x in self.events() if isinstance(x, e.WorkerLost)]


@contextlib.contextmanager
def digits(
    folder: Path,
    service: dict[str, Any] | list[dict[str, Any]],
    weights: Path,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Digits]:
    """An experiment that is led, until the end of the context; see :class:`Digits`."""
    made = Digits(folder, service, weights, environment)
    made.lead()
    try:
        yield made
    finally:
        made.kill()
