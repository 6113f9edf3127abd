"""What an agent answers when its head asks for files: bounded, paced, and confined."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.workers import agent_config
from trial_runtime import wire
from trial_runtime.agent.base.loop import Timers
from trial_runtime.agent.link.answered_files import (
    MOST_QUESTIONS,
    RATE,
    AnsweredFiles,
    NewestList,
    read,
)
from trial_runtime.checkpoints import folder_of


class Jobs:
    """A helper whose jobs are done when a test says so."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], Any], Callable[[Any, Exception | None], None]]] = []

    def submit(self, job: Callable[[], Any], done: Callable[[Any, Exception | None], None]) -> None:
        self.jobs.append((job, done))

    def work(self) -> None:
        job, done = self.jobs.pop(0)
        done(job(), None)


class Line:
    def __init__(self) -> None:
        self.epoch = 1
        self.takes = True
        self.given: list[wire.FileGiven] = []

    def answer(self, given: wire.FileGiven, epoch: int) -> bool:
        if self.takes and epoch == self.epoch:
            self.given.append(given)
        return self.takes


class Scene:
    def __init__(self, folder: Path) -> None:
        self.now = time.monotonic()
        self.config = agent_config(folder, "q")
        self.jobs, self.line, self.timers = Jobs(), Line(), Timers()
        helper: Any = self.jobs
        self.live: set[tuple[int, int]] = set()
        self.files = AnsweredFiles(
            self.config, helper, self.timers, self.line, self.live, clock=lambda: self.now
        )
        self.place = Path(self.config.trials_folder, "3", "1")
        self.place.mkdir(parents=True)

    def asks(self, number: int, path: str = "stdout", **more: int) -> wire.FileAsked:
        part = {"offset": 0, "limit": wire.MAX_PIECE_BYTES} | more
        return wire.FileAsked(number, 3, 1, os.fsencode(path), **part)

    def read(self, path: str = "stdout", **more: int) -> wire.FileGiven:
        return read(self.config, self.asks(1, path, **more), NewestList())


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.parametrize("runs", [True, False])
def test_an_attempt_that_has_written_nothing_yet_has_no_files_but_is_there(
    scene: Scene, runs: bool
) -> None:
    """Mutation: of one that runs and is silent it is said that nothing is left."""
    scene.place.rmdir()
    if runs:
        scene.live.add((3, 1))
    scene.files.take([scene.asks(1, "", most=9)])
    scene.jobs.work()
    scene.files.send()
    (given,) = scene.line.given
    assert given.gone != runs
    assert json.loads(given.data or "{}") == ({"files": [], "cut": False} if runs else {})


def test_a_file_is_read_in_parts_and_is_known_by_its_version(scene: Scene) -> None:
    (scene.place / "stdout").write_bytes(b"0123456789")
    first = scene.read(limit=4)
    assert (first.data, first.size) == (b"0123", 10)
    second = scene.read(offset=4)
    assert second.data == b"456789"
    assert (second.version, second.identity) == (first.version, first.identity)
    assert scene.read("stderr").gone


def test_a_list_comes_in_parts_too_and_changes_its_version_with_the_files(scene: Scene) -> None:
    for name in ("stdout", "stdout.1"):
        (scene.place / name).write_bytes(b"x")
    whole = scene.read("", most=9)
    assert whole.size == len(whole.data)
    assert [each[0] for each in json.loads(whole.data)["files"]] == ["stdout", "stdout.1"]
    part = scene.read("", most=9, offset=5, limit=7)
    assert (part.data, part.version) == (whole.data[5:12], whole.version)
    (scene.place / "stderr").write_bytes(b"")
    assert scene.read("", most=9).version != whole.version


def test_a_list_is_read_to_its_end_though_the_trial_writes(scene: Scene) -> None:
    """Mutation: each part is of another list, and `trial fetch` of a trial that runs, with more
    files than one answer holds, never gets through."""
    (scene.place / "stdout").write_bytes(b"x")
    text, version, limit = b"", "", 30
    while not text or len(text) < scene.line.given[-1].size:
        (scene.place / "stdout").write_bytes(b"x" * (2 + len(text)))
        scene.files.take([scene.asks(1, "", most=9, offset=len(text), limit=limit)])
        scene.jobs.work()
        scene.now += 1.0
        scene.timers.fire(scene.now)
        scene.files.send()
        given = scene.line.given[-1]
        text, version = text + given.data, version or given.version
        assert given.version == version
    assert [each[0] for each in json.loads(text)["files"]] == ["stdout"]
    scene.files.take([scene.asks(1, "", most=9)])
    scene.jobs.work()
    scene.files.send()
    assert scene.line.given[-1].version != version, "it is looked at anew"


def test_a_place_that_never_had_the_attempt_says_so(scene: Scene) -> None:
    """Mutation: the pod that came after is asked, and the trial has printed nothing."""
    question = wire.FileAsked(1, 4, 1, b"", 0, 99, 9)
    assert read(scene.config, question, NewestList()).gone


@pytest.mark.parametrize("path", ["../../3/1/stdout", "/etc/passwd", "work/../stdout", "spool", ""])
def test_nothing_else_is_read(scene: Scene, path: str) -> None:
    (scene.place / "stdout").write_bytes(b"x")
    (scene.place / "spool").write_bytes(b"secret")
    assert scene.read(path).gone


def test_no_link_is_followed(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (scene.place / "stdout").symlink_to(tmp_path / "secret")
    given = scene.read()
    assert given.error
    assert given.data == b""


def test_checkpoints_are_where_trials_write_them(scene: Scene) -> None:
    there = Path(folder_of(scene.config.weights_root, scene.config.experiment, 3))
    there.mkdir(parents=True)
    (there / "epoch").write_bytes(b"7")
    assert scene.read("checkpoints/epoch").data == b"7"


def test_a_name_that_is_no_text_is_read(scene: Scene) -> None:
    (scene.place / "artefacts").mkdir()
    name = os.fsdecode(b"artefacts/\xff")
    (scene.place / name).write_bytes(b"x")
    assert scene.read(name).data == b"x"
    listed = json.loads(scene.read("artefacts", most=9).data)["files"]
    assert listed[0][0] == name


def test_one_is_read_at_a_time_and_more_than_the_head_may_ask_are_passed_over(
    scene: Scene,
) -> None:
    """Mutation: a file system that hangs takes every thread that digests weights."""
    scene.files.take([scene.asks(n) for n in range(MOST_QUESTIONS + 3)])
    for number in range(MOST_QUESTIONS):
        assert len(scene.jobs.jobs) == 1
        scene.jobs.work()
        scene.files.send()
        assert [each.number for each in scene.line.given] == [*range(number + 1)]
    assert scene.jobs.jobs == []


def test_a_large_file_leaves_room_for_what_trials_report(scene: Scene) -> None:
    (scene.place / "stdout").write_bytes(b"x" * wire.MAX_PIECE_BYTES)
    rounds = 4 * RATE // wire.MAX_PIECE_BYTES
    began = scene.now
    for number in range(rounds):
        scene.files.take([scene.asks(number)])
        scene.jobs.work()
        scene.files.send()
        while len(scene.line.given) == number:
            due = scene.timers.next()
            assert due is not None
            scene.now = due
            scene.timers.fire(scene.now)
            scene.files.send()
    assert 2.0 < scene.now - began < 4.0


def test_a_head_that_takes_nothing_gets_it_later_and_another_one_never(scene: Scene) -> None:
    scene.files.take([scene.asks(1), scene.asks(2)])
    scene.line.takes = False
    scene.jobs.work()
    scene.files.send()
    assert scene.line.given == []
    scene.line.takes = True
    scene.now += 1.0
    scene.timers.fire(scene.now)
    scene.files.send()
    assert [each.number for each in scene.line.given] == [1]
    scene.line.epoch = 2
    scene.jobs.work()
    scene.files.send()
    assert [each.number for each in scene.line.given] == [1]


def test_a_reader_that_fails_answers_with_its_error(scene: Scene) -> None:
    scene.files.take([scene.asks(1)])
    _, done = scene.jobs.jobs.pop()
    done(None, ValueError("embedded null byte"))
    scene.files.send()
    assert scene.line.given[0].error == "ValueError"
