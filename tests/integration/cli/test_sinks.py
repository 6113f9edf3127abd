"""Trackers beside a search: it does not wait for them, and nothing of it is lost."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.integration.cli.conftest import Place
from tests.support.fed import bytes_below
from tests.support.processes import left_of, processes_of, wait_until, words_of
from tests.support.trackers import free_port, python_of

SECRET = "a-token-that-nobody-may-see"


@contextmanager
def black_hole() -> Iterator[int]:
    """A tracker that takes a connection, and never answers."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen(8)
        yield int(one.getsockname()[1])


def add_sinks(place: Place, port: int) -> None:
    place.environment["TRACKS"] = SECRET
    with (place.folder / "experiment.yml").open("a") as file:
        file.write(
            "sinks:\n"
            "  - {kind: tensorboard}\n"
            f"  - {{kind: mlflow, uri: 'http://127.0.0.1:{port}', token: 'env:TRACKS'}}\n"
        )


def feeder(place: Place) -> list[psutil.Process]:
    return [one for one in processes_of(place.experiment) if "--serve" in words_of(one)]


def texts_below(folder: Path) -> str:
    files = [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size < 1 << 20]
    return "".join(path.read_text(errors="replace") for path in files)


def test_a_tracker_that_is_away_is_named_and_delays_nobody(place: Place) -> None:
    """Mutation: a head that waits for its sinks."""
    add_sinks(place, free_port())
    place.go()
    began = time.monotonic()
    answer, told = place.both("run", "experiment.yml")
    assert "6 trials: 6 succeeded" in answer
    assert SECRET not in answer + told
    wait_until(lambda: left_of(place.experiment, 0) == [], "its process has ended", 30)
    lines = [line for line in place("status").splitlines() if line.startswith("sink")]
    assert lines[0].startswith("sink    mlflow: 6 trials behind")
    assert "the MLflow server does not answer: [Errno 111]" in lines[0]
    assert lines[1] == "sink    tensorboard: up to date"
    away, there = place.json("status")["sinks"]
    assert (away["kind"], away["taken"], away["behind"]) == ("mlflow", 0, 6)
    assert (there["kind"], there["taken"], there["behind"]) == ("tensorboard", 6, 0)
    assert there["target"] == str(place.experiment / "tb")
    assert SECRET not in texts_below(place.experiment)
    assert len(bytes_below(place.experiment / "tb")) == 7
    assert time.monotonic() - began < 120


def test_a_tracker_that_never_answers_is_left_behind(place: Place) -> None:
    with black_hole() as port:
        add_sinks(place, port)
        place.go()
        assert "6 trials: 6 succeeded" in place("run", "experiment.yml")
        (left,) = feeder(place)
        assert left.nice() >= 10
        assert "mlflow: 6 trials behind" in place("status")
        left.kill()
    assert left_of(place.experiment) == []


def test_killed_with_its_head_and_taken_up_by_the_next(place: Place) -> None:
    """Mutation: a process that feeds sinks of an experiment that nobody leads."""
    add_sinks(place, free_port())
    head = place.start("run", "experiment.yml")
    place.wait_until_running()
    place.wait_until(lambda: feeder(place), "the sinks' process runs")
    place.wait_until(lambda: bytes_below(place.experiment / "tb"), "files are there")
    (first,) = feeder(place)
    place("kill", "--yes")
    assert not psutil.pid_exists(first.pid) or first.status() == psutil.STATUS_ZOMBIE
    head.communicate()
    place.forget(head)  # it was killed, as it should
    place.go()
    place("resume")
    assert left_of(place.experiment) == []
    written = bytes_below(place.experiment / "tb")
    assert len(written) == 7
    place("sink", place.experiment.name, "--folder", "whole")
    assert bytes_below(place.folder / "whole" / place.experiment.name) == written


def test_a_head_that_is_killed_takes_its_sinks_along(place: Place) -> None:
    add_sinks(place, free_port())
    head = place.start("run", "experiment.yml")
    place.wait_until_running()
    place.wait_until(lambda: feeder(place), "the sinks' process runs")
    head.kill()
    head.communicate()
    place.forget(head)
    wait_until(lambda: not feeder(place), "nobody feeds sinks any more", 60)


def test_tensorboard_shows_an_experiment_until_ctrl_c(place: Place) -> None:
    """The program itself, on this machine alone; its files go with it."""
    programs = python_of("tensorboard").parent
    place.go()
    place("run", "experiment.yml")
    place.environment |= {
        "PATH": f"{programs}{os.pathsep}{os.defpath}",
        "TMPDIR": str(place.folder),
    }
    port = free_port()
    view = place.start("tensorboard", "--port", str(port))

    def runs() -> set[str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/data/runs", timeout=5) as answer:
                return {Path(run).name for run in json.loads(answer.read())}
        except OSError:
            return set()

    place.wait_until(lambda: len(runs()) == 7, "TensorBoard shows all runs")
    assert runs() == {place.experiment.name, *(f"trial-{n:05d}" for n in range(6))}
    (served,) = psutil.Process(view.pid).children()
    view.send_signal(signal.SIGINT)
    served.send_signal(signal.SIGINT)  # as a terminal does
    view.communicate(timeout=60)
    place.forget(view)
    assert not list(place.folder.glob("bequeath-tensorboard-*"))


def test_tensorboard_without_tensorboard_says_what_to_type(place: Place) -> None:
    place.go()
    place("run", "experiment.yml")
    place.environment["PATH"] = os.defpath
    out, told = place.both("tensorboard")
    folder = Path(out.split("files for TensorBoard are in ")[1].strip())
    assert len(bytes_below(folder / place.experiment.name)) == 7
    assert f"tensorboard --host 127.0.0.1 --logdir {folder}" in told
    assert folder.stat().st_mode & 0o77 == 0
    document = place.json("sink", "--folder", "again")
    assert (document["taken"], document["behind"]) == (6, 0)
    assert "there is no sink 'x'" in place("sink", "--kind", "x", code=3)
