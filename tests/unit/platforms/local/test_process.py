"""The process of this machine's agent: given up without waiting, followed after growing pauses."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.platforms.agents.process import Loss
from dispatcher.platforms.local import installed, process
from dispatcher.platforms.local.process import LocalProcess
from tests.support.processes import wait_until
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.agent.processes.record import record_of, record_path, write_record
from trial_runtime.endpoint import Endpoint


class Scene:
    """Agents are processes that sleep; time goes on when the test says so."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.started: list[subprocess.Popen[bytes]] = []
        self.swept = 0
        self.config = AgentConfig(
            worker="local",
            slots=1,
            head=Endpoint("ipc:///nowhere"),
            epoch=1,
            run_folder=str(folder),
            experiment_folder=str(folder),
            trial=TrialSpec("/code", command="true"),
            weights_root="/w",
        )
        monkeypatch.setattr(process, "start_agent", self.start)
        monkeypatch.setattr(process, "kill_sessions_below", self._sweep)
        self.process = LocalProcess(folder, "local", str(folder), clock=lambda: self.now)

    def start(self, folder: Path, worker: str, *, code: str) -> Any:
        one = subprocess.Popen(["sleep", "600"], start_new_session=True)
        one.returncode = 0  # reaped by its number, as the real one is
        self.started.append(one)
        record = record_of(one.pid, code=code)
        write_record(record_path(folder, worker), record)
        return record

    def _sweep(self, _folder: str) -> int:
        self.swept += 1
        return 0

    def end_by_itself(self) -> Loss:
        os.kill(self.started[-1].pid, 9)
        losses: list[Loss] = []
        wait_until(lambda: losses or losses.extend(filter(None, [self.process.look(0.0)])), "ends")
        return losses[0]

    def close(self) -> None:
        for one in self.started:
            try:
                os.kill(one.pid, 9)
                os.waitpid(one.pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    one = Scene(tmp_path, monkeypatch)
    yield one
    one.close()


def test_one_that_ends_soon_is_followed_after_a_pause_that_grows(scene: Scene) -> None:
    """Mutations: no pause; one that does not grow; one that long lives do not end."""
    scene.process.ensure(scene.config)
    assert len(scene.started) == 1
    for count, pause_s in enumerate((0.25, 0.5, 1.0), 2):
        assert scene.end_by_itself().reason == "its process ended"
        scene.process.give_up()
        scene.process.ensure(scene.config)
        scene.now += 0.9 * pause_s
        assert scene.process.look(0.0) is None
        assert len(scene.started) == count - 1
        assert "waits for a moment" in scene.process.trouble
        scene.now += 0.2 * pause_s
        scene.process.look(0.0)
        assert len(scene.started) == count
        assert scene.process.trouble == ""
    scene.now += process.SHORT_LIFE_S
    scene.end_by_itself()
    scene.process.give_up()
    scene.process.ensure(scene.config)
    assert len(scene.started) == 5, "it had lived long"


def test_one_that_is_given_up_is_gone_before_the_next_is_started(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: it is waited for in the engine's thread; not at all."""
    scene.process.ensure(scene.config)
    first = scene.started[0].pid
    scene.now += process.SHORT_LIFE_S
    slept: list[float] = []
    ours, sleep = threading.get_ident(), time.sleep
    # A thread that another test has left behind may sleep: the engine's may not.
    monkeypatch.setattr(
        process.time,
        "sleep",
        lambda s: (slept.append if threading.get_ident() == ours else sleep)(s),
    )
    runs = process.is_running
    # A moment in the kernel: it is neither reaped nor gone, however quick it is.
    monkeypatch.setattr(process.os, "waitpid", lambda pid, options: (0, 0))
    monkeypatch.setattr(process, "is_running", lambda record: True)
    scene.process.give_up()
    scene.process.ensure(scene.config)
    scene.process.look(0.0)
    assert slept == []
    assert len(scene.started) == 1
    assert scene.process.pid is None
    assert scene.process.expects(first) is False
    assert "has not ended yet" in scene.process.trouble
    assert scene.swept == 0, "it might still start something"
    monkeypatch.undo()
    monkeypatch.setattr(process, "start_agent", scene.start)
    monkeypatch.setattr(process, "kill_sessions_below", scene._sweep)
    assert runs is process.is_running
    wait_until(lambda: scene.process.look(0.0) or len(scene.started) == 2, "the next one")
    assert scene.swept == 1
    assert scene.process.expects(scene.started[1].pid)
    scene.process.end(0.0)
    assert scene.process.pid is None


@pytest.mark.parametrize("code, outdated", [("as installed", False), ("another", True), ("", True)])
def test_one_of_other_code_than_is_installed_is_outdated(
    scene: Scene, tmp_path: Path, code: str, outdated: bool
) -> None:
    """Also one of 0.1.0, whose record has no digest. Mutation: what was left is taken for ours."""
    code = process.installed_code() if code == "as installed" else code
    scene.start(tmp_path, "local", code=code)
    scene.process.ensure(scene.config)
    assert scene.process.outdated is outdated
    scene.process.give_up(10.0)
    scene.process.ensure(scene.config)
    os.kill(scene.started[0].pid, 9)
    wait_until(lambda: scene.process.look(0.0) or len(scene.started) == 2, "the next one")
    assert scene.process.outdated is False


def test_what_is_installed_is_known_by_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "trial_runtime"
    (package / "agent").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "agent" / "one.py").write_text("A = 1")
    monkeypatch.setattr(installed.trial_runtime, "__file__", str(package / "__init__.py"))
    before = installed.installed_code()
    os.utime(package / "agent" / "one.py", (1, 1))
    (package / "agent" / "one.cpython-311.pyc").write_text("compiled")
    assert installed.installed_code() == before
    (package / "agent" / "one.py").rename(package / "agent" / "two.py")
    assert installed.installed_code() not in (before, "")
    (package / "gone.py").symlink_to("nowhere")
    assert installed.installed_code() == "", "an installer is at work: it will be looked at again"


def test_one_that_was_asked_to_leave_has_its_time(scene: Scene) -> None:
    """What it has told is struck off its spool first. Mutations: it is killed at once; its pause
    counts against the next one."""
    scene.process.ensure(scene.config)
    scene.process.give_up(10.0)
    scene.process.ensure(scene.config)
    scene.now += 9.9
    scene.process.look(0.0)
    assert os.waitpid(scene.started[0].pid, os.WNOHANG) == (0, 0)
    assert len(scene.started) == 1
    scene.now += 0.2
    wait_until(lambda: scene.process.look(0.0) or len(scene.started) == 2, "the next one")
