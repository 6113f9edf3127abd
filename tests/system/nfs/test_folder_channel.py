"""The channel through a folder over real NFS: the head and its agents are on two clients of a
server, and talk by files of the share alone."""

from __future__ import annotations

import json
import sys

import pytest

from tests.system.nfs.conftest import Share
from tests.system.nfs.first import TRIAL
from tests.system.nfs.rig import ROOT, Machine, Running, why_not

pytestmark = [
    pytest.mark.extended,
    pytest.mark.needs("nfs"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "all is there"),
]

CODE = ROOT / "tests/integration/machines/code"
EXAMPLE = ROOT / "examples/backend_queue"
TRIALS = 20

#: Nobody else serves the queue while this runs: a lock of a client would not outlive a cut line.
_HOLD = """
import fcntl, signal, sys
with open(sys.argv[1], "w") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX)
    print("holds", flush=True)
    signal.pause()
"""

#: The queue of the example, which gives its places on the machine where this runs.
_SERVE = """
import sys, threading
from pathlib import Path
from bequeath_queue.queue import serve
while True:
    serve(Path(sys.argv[1]), 2)
    threading.Event().wait(0.2)
"""

_LOOK = """
import sqlite3, sys
store = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
print(list(store.execute("SELECT count(number), count(parent) FROM trials").fetchone()))
"""


def python(*words: str) -> tuple[str, ...]:
    """Our interpreter by the trials' user, who has the example installed."""
    paths = f"PYTHONPATH={ROOT}:{EXAMPLE}:{TRIAL.home}/installed"
    return Machine.user_argv("env", paths, sys.executable, "-P", "-B", *words)


def install(machine: Machine, experiment: dict[str, object]) -> None:
    """What ``pip install`` leaves of the example, and the experiment's file, in the user's home."""
    info = f"{TRIAL.home}/installed/bequeath_queue-1.0.dist-info"
    points = "[bequeath.backends]\nqueue = bequeath_queue.platform:QUEUE\n"
    script = f"""
        mkdir -p {info}
        printf 'Metadata-Version: 2.1\\nName: bequeath-queue\\nVersion: 1.0\\n' >{info}/METADATA
        printf '%s' '{points}' >{info}/entry_points.txt
        printf '%s' '{json.dumps(experiment)}' >{TRIAL.home}/lab.yml
        """
    done = machine.as_user("sh", "-ec", script)
    assert done.code == 0, done


def look(machine: Machine) -> tuple[int, int]:
    """Trials with a result, and trials with a parent, as the journal on the head's disk has it."""
    found = machine.run("sh", "-c", f"ls {TRIAL.home}/experiments/*/journal.sqlite").out.strip()
    done = machine.python(_LOOK, found)
    ended, children = json.loads(done.out) if done.code == 0 else (0, 0)
    return ended, children


def until(machine: Machine, running: Running, ended: int) -> None:
    """Wait until so many trials have a result."""

    def enough() -> bool:
        assert running.alive(), running.wait()
        return look(machine)[0] >= ended

    assert machine.await_(enough, 280), (look(machine), running.said())


def test_a_head_and_its_agents_meet_on_a_share_alone(share: Share) -> None:
    """The head is killed and led again, and the agents' machine loses its line to the server for a
    while. Nothing is lost, and no port is opened.

    Mutations: the bell is looked at by a name that the client of NFS remembers to be missing; a
    file is read before its announcement; a share that hangs ends the head."""
    head, agents, point = share.one, share.two, share.point
    shared = f"{point}/shared"
    install(
        head,
        {
            "experimentName": "lab",
            "experimentWorkingDirectory": f"{TRIAL.home}/experiments",
            "tuner": {
                "className": "lineage_tuner:Lineage",
                "codeDirectory": str(CODE),
                "classArgs": {"wait_s": 0.5},
            },
            "trialFunction": "lineage_trial:main",
            "trialCodeDirectory": str(CODE),
            "trialConcurrency": 2,
            "maxTrialNumber": TRIALS,
            "trialRetries": 0,
            "headGrace": "300s",
            "weightsRoot": f"{shared}/weights",
            "seed": 1,
            "trainingService": {
                "platform": "queue",
                "queue": f"{point}/queue",
                "seats": 2,
                "wallTime": "1h",
                "slots": 1,
                "reuseMode": "inProcess",
                "preload": ["numpy"],
                "allocations": 2,
                "channel": "folder",
                "sharedFolder": shared,
            },
        },
    )
    made = agents.as_user("mkdir", "-p", "-m", "700", f"{point}/queue", shared)
    assert made.code == 0, made
    holder = share.server.start(*python("-c", _HOLD, f"{share.folder}/queue/lock"))
    assert share.server.await_(lambda: "holds" in holder.said(), 280), holder.said()
    queue = agents.start(*python("-c", _SERVE, f"{point}/queue"))

    first = head.start(*python("-m", "dispatcher.cli", "run", f"{TRIAL.home}/lab.yml"))
    until(head, first, 3)
    first.signal("KILL")
    first.wait()
    where = head.run("sh", "-c", f"ls -d {TRIAL.home}/experiments/lab-*").out.strip()
    assert head.run("test", "-e", f"{where}/keys/port").code != 0, "the head listens at a port"
    before = look(head)[0]
    second = head.start(*python("-m", "dispatcher.cli", "resume", where))
    until(head, second, before + 2)

    before = look(head)[0]
    share.network.cut(agents)
    head.run("sleep", "6")
    cut_at = look(head)[0]
    share.network.heal(agents)
    assert cut_at <= before + 4, "its results came, and nothing was cut"
    ended = second.wait(280)
    logs = head.run("sh", "-c", f"tail -n 60 {where}/logs/*")
    assert ended.code == 0, (ended, logs.out)
    checked = head.python("-m", "tests.support.checker", f"{where}/journal.sqlite")
    assert (checked.code, checked.out.strip()) == (0, "no promise was broken"), checked
    assert look(head) == (TRIALS, TRIALS - 3)
    for each in (queue, holder):
        each.signal("KILL")
    ran = agents.as_user(
        "sh", "-c", f"cat {shared}/bequeath/*/*/trials/*/*/stdout | sort | uniq -c"
    ).out
    assert "ran on two" in ran, ran
    assert "ran on one" not in ran, ran
