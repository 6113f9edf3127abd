"""Callbacks: what is called, with what, how often, and what a bad one does to all others."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from dispatcher.experiment import build_experiment
from dispatcher.experiment.callbacks import CallbackConfig
from dispatcher.experiments.creating import create
from dispatcher.maintenance.backup import back_up
from dispatcher.notebook.following import EventFollower
from dispatcher.queries import ExperimentReader
from dispatcher.sinks.callbacks import calls as calls_module
from dispatcher.sinks.callbacks.calls import CallLog, Calls
from dispatcher.sinks.serving import SinkThread
from dispatcher.sinks.standing import standings
from dispatcher.store.copying import copy_store
from tests.support.fed import FedLife, journal_of
from tests.support.processes import wait_until

HOOKS = '''
import json, os, signal, sys, time

def tell(facts):
    """Each call is a line."""
    print("told of", facts["event"])
    with open(os.path.join(os.path.dirname(__file__), "calls"), "a") as file:
        file.write(json.dumps(facts) + "\\n")

def bad(facts):
    tell(facts)
    raise ValueError("no\\nway")

def leaves(facts):
    sys.exit(3)

def dies(facts):
    os.kill(os.getpid(), signal.SIGKILL)

def hangs(facts):
    tell(facts)
    signal.pause()

def asks(facts):
    assert sys.stdin.read() == ""
    tell(facts)

def same(facts):
    tell({**facts, "pid": os.getpid()})

def forks(facts):
    tell(facts)
    if os.fork():
        os.wait()
'''


class Place:
    """An experiment whose file has callbacks, with trials in its store."""

    def __init__(self, base: Path) -> None:
        self.code = base / "code"
        self.code.mkdir()
        (self.code / "hooks.py").write_text(HOOKS)
        self.folder = base

    def create(self, **callbacks: Any) -> None:
        values = {
            "searchSpace": {"lr": {"_type": "uniform", "_value": [0, 1]}},
            "tuner": {"name": "Random"},
            "trialCommand": "true",
            "trialCodeDirectory": str(self.code),
            "trialConcurrency": 2,
            "optimizeMode": "minimize",
            "experimentWorkingDirectory": str(self.folder / "experiments"),
            "callbacks": callbacks,
        }
        config = build_experiment(values)
        (self.section,) = config.fed
        self.folder = create(config)

    def live(self, *values: str, fails: tuple[int, ...] = (), phase: str = "") -> None:
        """Trials 1, 2, … end with these results, one after another."""
        with journal_of(self.folder) as journal:
            life = FedLife(journal)
            for trial, value in enumerate(values, 1):
                life.propose(trial, None, life.parameters(trial))
                life.start(trial)
                if trial in fails:
                    for attempt in (1, 2, 3):
                        life.fail(trial, attempt)
                        if attempt < 3:
                            life.start(trial, attempt + 1)
                    life.deliver(trial)
                else:
                    life.finish(trial, 5, value=value)
            if phase:
                journal.record_end(1, phase, "all is said")

    def feed(self) -> SinkThread:
        over = threading.Event()
        over.set()
        one = SinkThread(self.folder, self.section, over)
        one.run()
        return one

    @property
    def calls(self) -> list[dict[str, Any]]:
        file = self.code / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def seen(self) -> list[tuple[str, int | None]]:
        return [(each["event"], each.get("trial")) for each in self.calls]

    @property
    def log(self) -> str:
        return (self.folder / "logs" / "callbacks.log").read_text()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_each_end_each_new_best_and_the_end_are_called_for_once(place: Place) -> None:
    """Mutations: the direction is not looked at; what was called for is called for again."""
    place.create(onTrialEnd="hooks:tell", onNewBest="hooks:tell", onExperimentEnd="hooks:tell")
    place.live("0.5", "0.7", "0.25", phase="completed")
    place.feed()
    expected = [
        ("trial_end", 1), ("new_best", 1), ("trial_end", 2), ("trial_end", 3), ("new_best", 3),
        ("experiment_end", 3),
    ]  # fmt: skip
    assert place.seen() == expected
    first, best, end = place.calls[0], place.calls[4], place.calls[5]
    assert first["experiment"] == place.folder.name
    assert (first["value"], first["outcome"]) == (0.5, "succeeded")
    assert first["parameters"]["act"] == "tanh"
    assert (best["value"], best["best_before"]) == (0.25, 0.5)
    assert (end["status"], end["reason"], end["value"]) == ("completed", "all is said", 0.25)
    place.feed()
    assert place.seen() == expected, "nothing comes twice"


def test_the_end_of_an_experiment_without_trials_is_called_for(place: Place) -> None:
    place.create(onExperimentEnd="hooks:tell")
    with journal_of(place.folder) as journal:
        journal.record_end(1, "failed", "no such tuner")
    place.feed()
    assert [(each["event"], each["reason"]) for each in place.calls] == [
        ("experiment_end", "no such tuner")
    ]


def test_a_failing_trial_has_its_error_and_a_bad_callback_harms_nobody(place: Place) -> None:
    """Mutation: the first exception ends the feeding."""
    place.create(onTrialEnd="hooks:bad", onNewBest="hooks:tell")
    place.live("0.5", "0", "0.25", fails=(2,))
    one = place.feed()
    assert one.error is None
    assert place.seen() == [
        ("trial_end", 1), ("new_best", 1), ("trial_end", 2), ("trial_end", 3), ("new_best", 3),
    ]  # fmt: skip
    assert (place.calls[2]["success"], place.calls[2]["error"]) == (False, "boom")
    with ExperimentReader.open(place.folder) as reader:
        (standing,) = standings(place.folder, reader)
    assert (standing.name, standing.behind, standing.taken) == ("callbacks", 0, 3)
    assert standing.error.startswith("3 calls have failed (logs/callbacks.log), the last one at ")
    assert standing.error.endswith("trial_end of trial 3: ValueError: no way")
    assert place.log.count("raise ValueError") == 3
    assert "told of trial_end" in place.log


@pytest.mark.parametrize(
    "function, problem",
    [
        ("hooks:leaves", "SystemExit: 3"),
        ("hooks:dies", "its process has ended"),
        ("hooks:hangs", "it took longer than 1 s, and was ended ('timeLimit')"),
    ],
)
def test_the_next_call_after_a_bad_one_is_made(place: Place, function: str, problem: str) -> None:
    """Mutation: a process that is gone is asked again."""
    place.create(onTrialEnd=function, onNewBest="hooks:tell", timeLimit="1s")
    place.live("0.5", "0.7")
    place.feed()
    assert ("new_best", 1) in place.seen()
    for trial in (1, 2):
        assert f"{function} failed, trial_end of trial {trial}: {problem}" in place.log


def test_functions_share_a_process_that_reads_nothing_of_ours(place: Place) -> None:
    place.create(onTrialEnd="hooks:same", onNewBest="hooks:asks")
    place.live("0.5", "0.7")
    place.feed()
    assert ("new_best", 1) in place.seen()
    assert len({each["pid"] for each in place.calls if "pid" in each}) == 1


def test_a_call_that_had_returned_before_a_kill_is_not_made_again(place: Place) -> None:
    """Mutation: what has returned is not written down before the cursor is."""
    place.create(onTrialEnd="hooks:tell")
    place.live("0.5", "0.7", "0.25")
    command = [sys.executable, "-P", "-m", "dispatcher.cli", "sink", str(place.folder)]
    killed = subprocess.run(
        command, env={**os.environ, "BEQUEATH_FAILPOINTS": "sink.flushed=kill"}, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert place.seen() == [("trial_end", 1), ("trial_end", 2), ("trial_end", 3)]
    place.feed()
    assert len(place.calls) == 3


def test_a_command_gets_the_facts_as_json_and_as_variables_and_no_shell(place: Place) -> None:
    """Mutation: a value becomes part of a line that a shell reads."""
    script = place.code / "notify.sh"
    script.write_text(
        '#!/bin/sh\ncat > got\nprintf \'%s|%s|%s\' "$BEQUEATH_EVENT" "$BEQUEATH_EVENT_VALUE" '
        '"$1" > variables\necho noticed\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    place.create(onTrialEnd={"command": "notify.sh '$(touch harm); a b'"})
    place.live("0.5")
    place.feed()
    assert json.loads((place.code / "got").read_text())["value"] == 0.5
    assert (place.code / "variables").read_text() == "trial_end|0.5|$(touch harm); a b"
    assert not (place.code / "harm").exists()


def test_a_function_that_hangs_ends_though_whoever_has_called_it_is_killed(place: Place) -> None:
    """Mutation: its process waits for ever for a function that never returns."""
    place.create(onTrialEnd="hooks:hangs", timeLimit="4s")
    place.live("0.5")
    command = [sys.executable, "-P", "-m", "dispatcher.cli", "sink", str(place.folder)]
    process = subprocess.Popen(command, start_new_session=True)
    wait_until(lambda: bool(place.calls), "it has called the function")
    (function,) = psutil.Process(process.pid).children()
    process.kill()
    process.wait()
    wait_until(lambda: not function.is_running(), "it has ended with its time")


def test_a_program_that_hangs_is_ended_with_its_children(place: Place, tmp_path: Path) -> None:
    """Mutation: only the call ends, and the program goes on."""
    calls = Calls(place.code, 0.5, CallLog(tmp_path / "log"))
    hangs = CallbackConfig(command="sh -c 'echo $$ > pid; sleep 3600 & wait'")
    assert "took longer than 0.5 s" in calls.call(hangs, {"event": "trial_end"})
    group = int((place.code / "pid").read_text())
    wait_until(lambda: not group_is_there(group), "all of it is gone")


def group_is_there(group: int) -> bool:
    """Whether a process of a group is there."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def call(place: Place, log: CallLog, **callback: str) -> str:
    calls = Calls(place.code, 5.0, log)
    try:
        return calls.call(CallbackConfig(**callback), {"event": "trial_end", "text": "x" * 300_000})
    finally:
        calls.close()


def test_ends_of_commands_and_facts_larger_than_a_pipe(place: Place, tmp_path: Path) -> None:
    log = CallLog(tmp_path / "log")
    assert call(place, log, command="true") == ""
    assert call(place, log, command="false") == "exit code 1"
    assert call(place, log, command="sh -c 'kill -9 $$'") == "signal 9"
    assert call(place, log, command="/no/such") == "cannot be started: No such file or directory"
    assert call(place, log, function="hooks:tell") == ""
    assert call(place, log, function="hooks:nothing").startswith("AttributeError: module 'hooks'")
    assert call(place, log, function="json:nope").startswith("AttributeError: ")
    assert len(place.calls[0]["text"]) == 300_000


def test_the_log_is_bounded_by_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: one call may print without end."""
    monkeypatch.setattr(calls_module, "MOST_LOG", 1000)
    log = CallLog(tmp_path / "log")
    for number in range(100):
        log.write(b"%03d " % number * 30)
    log.write(b"z" * 5000)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "log.1"]
    assert all(path.stat().st_size <= 1000 for path in tmp_path.iterdir())
    assert (tmp_path / "log").read_bytes().endswith(b"zz")


def test_a_fork_that_comes_back_from_a_function_answers_nothing(place: Place) -> None:
    """Mutation: it serves calls as its parent does, and waits for ever for the first."""
    log = CallLog(place.folder / "log")
    with closing(Calls(place.code, 20.0, log)) as calls:
        for _ in range(3):
            assert calls.call(CallbackConfig(function="hooks:forks"), {"event": "x"}) == ""
    assert place.seen() == [("x", None)] * 3


def _goes_on(place: Place, folder: Path, *values: str, day: int) -> None:
    """A head leads from the store as it is: trials from 3 on end with these results on a day."""
    with journal_of(folder, epoch=2) as journal:
        life = FedLife.of(journal, FedLife.replayed(journal))
        life.now += 86_400.0 * day
        for trial, value in enumerate(values, 3):
            life.propose(trial, None, life.parameters(trial))
            life.start(trial)
            life.finish(trial, 5, value=value)
        journal.record_end(2, "stopped", "enough")


@pytest.mark.parametrize("more", [1, 9])
def test_an_older_store_is_gone_on_from(place: Place, more: int) -> None:
    """Also if what runs again was called for under the same number, and if the store has grown
    beyond what it had been. Mutations: all is called for anew; what runs again is not called for;
    the best that went with the newer store stays."""
    place.create(onTrialEnd="hooks:tell", onNewBest="hooks:tell", onExperimentEnd="hooks:tell")
    place.live("0.5", "0.7")
    copy_store(place.folder / "journal.sqlite", place.folder / "older")
    _goes_on(place, place.folder, "0.1", "0.2", day=1)
    place.feed()
    before = len(place.calls)
    for path in place.folder.glob("journal.sqlite*"):
        path.unlink()
    (place.folder / "older").rename(place.folder / "journal.sqlite")
    _goes_on(place, place.folder, "0.3", *["0.6"] * more, day=2)
    assert place.feed().error is None
    place.feed()
    ends = [("trial_end", 3 + n) for n in range(more + 1)]
    wanted = [ends[0], ("new_best", 3), *ends[1:], ("experiment_end", 3)]
    assert place.seen()[before:] == wanted
    assert (
        next(each for each in place.calls[before:] if "best_before" in each)["best_before"] == 0.5
    )
    assert place.log.count("the store has become an older one") == 1


def test_a_backup_goes_on_with_its_callbacks(place: Place, tmp_path: Path) -> None:
    """Mutations: it calls for all that the original has called for; it stays silent."""
    place.create(onTrialEnd="hooks:tell", onNewBest="hooks:tell", onExperimentEnd="hooks:tell")
    place.live("0.5", "0.7", phase="stopped")
    place.feed()
    before = len(place.calls)
    place.folder = back_up(place.folder, tmp_path / "kept").folder
    place.feed()
    assert len(place.calls) == before
    _goes_on(place, place.folder, "0.6", "0.3", day=2)
    place.feed()
    wanted = [("trial_end", 3), ("trial_end", 4), ("new_best", 4), ("experiment_end", 4)]
    assert place.seen()[before:] == wanted


def test_a_result_beyond_a_bound_is_no_new_best(place: Place) -> None:
    """Mutation: people hear of a best trial that ``best`` leaves out."""
    place.create(onNewBest="hooks:tell")
    config = json.loads((place.folder / "experiment.json").read_text())
    config["experiment"]["objectives"] = {"default": "minimize", "size": "<= 4"}
    (place.folder / "experiment.json").write_text(json.dumps(config))
    place.live(*(json.dumps({"default": d, "size": s}) for d, s in ((5, 4), (1, 9), (3, 2))))
    place.feed()
    assert place.seen() == [("new_best", 1), ("new_best", 3)]
    assert place.calls[1]["best_before"] == 5
    events = EventFollower(place.folder, metrics=False).page().events
    assert [one.number for one in events if one.kind == "new_best"] == [1, 3]
