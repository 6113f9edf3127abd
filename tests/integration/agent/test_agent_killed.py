"""``kill -9`` of an agent whose head is dead, too: promise 6, kept by its warden alone."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.integration.agent.fake_head import PATIENCE_S
from tests.support.processes import wait_until
from tests.support.workers import LOCAL
from trial_runtime import facts, wire
from trial_runtime.agent.processes import warden
from trial_runtime.facts import EndReason

PY = sys.executable

#: Says that it is there, and trains for longer than any test looks.
TRAIN = """
import os
from tests.support import hold
def main(p=None):
    open(f"pids/{os.getpid()}", "w").close()
    hold.for_ever()
if __name__ == "__main__":
    main()
"""

#: The same in a process that the trial has forked, which has a session of its own.
FORKING = TRAIN.replace("    open(", "    if os.fork() == 0: os.setsid()\n    open(")


def runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def there(head, count):
    """The processes of the trial, once that many have come so far."""
    folder = head.code / "pids"
    return head.until(
        lambda: len(found := [int(each.name) for each in folder.iterdir()]) >= count and found,
        "processes of the trial",
    )


def warden_of(head) -> int | None:
    """That of its agent, if there is one now."""
    children = Path(f"/proc/{head.process.pid}/task/{head.process.pid}/children")
    for pid in children.read_text().split():
        if warden.__file__.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
            return int(pid)
    return None


def test_a_warden_is_there_before_the_first_trial_and_leaves_with_its_agent(head_with):
    head = head_with(command="true")
    guarding = head.until(lambda: warden_of(head), "the warden")
    assert head.run(1).reason == EndReason.FINISHED
    assert warden_of(head) == guarding, "it is nobody's leftover"
    head.send(wire.Shutdown(0.0))
    assert head.wait() == 0
    wait_until(lambda: not runs(guarding), "the end of the warden", PATIENCE_S)


@pytest.mark.parametrize(
    "command",
    [
        f"{PY} train.py; true",
        f"{PY} train.py | cat",
        f"env -i {PY} train.py | cat",
        f"setsid {PY} train.py; true",
        f"({PY} train.py &) ; {PY} train.py",
    ],
)
def test_nothing_of_a_command_outlives_head_and_agent(head_with, command):
    """The kernel ends bash with the agent, and nothing of what bash had started."""
    head = head_with(command=command)
    (head.code / "pids").mkdir()
    head.script(TRAIN)
    head.start(1)
    found = there(head, command.count("train.py"))
    head.die()
    head.process.kill()
    wait_until(lambda: not any(map(runs, found)), "the end of what the agent ran", PATIENCE_S)


@pytest.mark.parametrize("reuse", ["none", "forked", "inProcess"])
def test_nothing_of_a_function_outlives_head_and_agent(head_with, reuse):
    """What a forked trial forks carries the environment of its server: a sweep by sessions
    cannot know it."""
    head = head_with(function="train:main", reuse=reuse)
    (head.code / "pids").mkdir()
    head.script(FORKING)
    head.start(1)
    found = there(head, 2)
    head.die()
    head.process.kill()
    wait_until(lambda: not any(map(runs, found)), "the end of what the agent ran", PATIENCE_S)


def test_a_warden_that_comes_late_leaves_the_next_agents_trials_alone(head_with):
    """It may be starved for as long as a head takes to start another agent. Mutation: it ends
    all that runs below the run folder."""
    head = head_with(command=f"{PY} train.py; true", head_grace_s=60.0)
    (head.code / "pids").mkdir()
    head.script(TRAIN)
    head.start(1)
    (first,) = there(head, 1)
    late = warden_of(head)
    os.kill(late, signal.SIGSTOP)
    head.process.kill()
    head.process.wait()
    head.life = ""
    head.launch()
    head.until(lambda: head.life, "hello of the next one")
    head.start(2)
    both = there(head, 2)
    os.kill(late, signal.SIGCONT)
    wait_until(lambda: not runs(first), "the end of what the first agent ran", PATIENCE_S)
    wait_until(lambda: not runs(late), "the end of its warden", PATIENCE_S)
    (second,) = set(both) - {first}
    assert runs(second)
    head.send(facts.StopAttempt(LOCAL, 2, 1, EndReason.KILLED, 0.0))
    assert head.end_of(2).reason == "killed by the user"


def test_a_warden_that_is_killed_is_followed_by_another(head_with):
    head = head_with(command="true")
    before = warden_of(head)
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{before}").exists(), "its reaping", PATIENCE_S)
    head.until(lambda: warden_of(head) not in (None, before), "the next one")
    assert head.run(1).reason == EndReason.FINISHED
