"""Evolution of digit classifiers on two machines: weights over kernel NFS, trials over SSH.

The clocks of both are wrong, one fast and one slow: nothing that counts is told by them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support import sshd
from tests.system.nfs.conftest import Share
from tests.system.nfs.first import TRIAL
from tests.system.nfs.rig import Machine, why_not

pytestmark = [
    pytest.mark.extended,
    pytest.mark.needs("nfs"),
    pytest.mark.needs("sshd"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        bool(why_not() or sshd.why_not()), reason=why_not() or sshd.why_not() or "all is there"
    ),
]

CODE = Path(__file__).parent / "digits"
TRIALS = 24

#: By how much the clock of each machine is wrong (seconds).
FAST_S, SLOW_S = 3 * 3600, -2 * 86400

_SSHD = """\
HostKey /etc/ssh/host_key
UsePAM no
UseDNS no
StrictModes no
PidFile none
PasswordAuthentication no
Subsystem sftp {sftp}
"""

_DATA = """
import gzip, importlib.util, os, sys
import numpy as np
folder = os.path.dirname(importlib.util.find_spec("sklearn").origin)
with gzip.open(folder + "/datasets/data/digits.csv.gz") as file:
    table = np.loadtxt(file, delimiter=",", dtype=np.uint8)
np.savez(sys.argv[1], pixels=table[:, :-1], digits=table[:, -1])
"""

_LOOK = """
import json, sqlite3, sys
store = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
print(json.dumps({
    "ran": store.execute("SELECT trial, attempt, worker, end_reason FROM attempts").fetchall(),
    "born": store.execute("SELECT id, parent, number FROM trials").fetchall(),
}))
"""

_MOMENTS = """
import sqlite3, sys
store = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
print(list(store.execute("SELECT min(at), max(at) FROM journal").fetchone()))
"""


def sh(machine: Machine, script: str) -> str:
    done = machine.run("sh", "-ec", script, limit_s=280)
    assert done.code == 0, done
    return done.out


def serve_ssh(machine: Machine, key: str) -> str:
    """Start its sshd for the trials' user; returns its line for known_hosts."""
    home = TRIAL.home
    config = _SSHD.format(sftp=sshd.sftp_server())
    sh(
        machine,
        f"""
        mkdir -p {home}/.ssh /run/sshd /etc/ssh
        usermod -p '*' {TRIAL.name}
        printf '%s\\n' '{key}' >{home}/.ssh/authorized_keys
        chown -R {TRIAL.name} {home}
        rm -f /etc/ssh/host_key*
        ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/host_key
        printf '%s' '{config}' >/etc/ssh/sshd_test
        /usr/sbin/sshd -f /etc/ssh/sshd_test -E /run/sshd.log
        """,
    )
    return f"{machine.name} " + " ".join(sh(machine, "cat /etc/ssh/host_key.pub").split()[:2])


def clock(machine: Machine) -> int:
    """Seconds since 1970, as a machine has it."""
    return int(sh(machine, "date +%s"))


def set_wrong(machine: Machine, by_s: int) -> None:
    """Step its clock."""
    sh(machine, f"date -u -s @$(( $(date +%s) + ({by_s}) ))")


def test_digits_evolve_on_two_machines(share: Share) -> None:
    server, home = share.server, TRIAL.home
    set_wrong(share.one, FAST_S)
    set_wrong(share.two, SLOW_S)
    key = f"{home}/.ssh/id_ed25519"
    make = f"mkdir -p {home}/.ssh; ssh-keygen -q -t ed25519 -N '' -f {key}; cat {key}.pub"
    done = server.as_user("sh", "-ec", make)
    assert done.code == 0, done
    known = [serve_ssh(machine, done.out.strip()) for machine in (share.one, share.two)]
    experiment = {
        "experimentName": "digits",
        "experimentWorkingDirectory": f"{home}/experiments",
        "tuner": {"className": "digits_tuner:Evolution", "codeDirectory": str(CODE)},
        "trialFunction": "digits_trial:main",
        "trialCodeDirectory": str(CODE),
        "trialEnvironment": {
            "DIGITS": f"{share.point}/digits.npz",
            "HOSTS": f"{share.point}/hosts",
        },
        "trialConcurrency": 4,
        "maxTrialNumber": TRIALS,
        "weightsRoot": f"{share.folder}/nas",
        "seed": 7,
        "debug": True,
        "trainingService": {
            "platform": "ssh",
            "reuseMode": "inProcess",
            "preload": ["numpy"],
            "slots": 2,
            "machineList": [
                {
                    "host": name,
                    "user": TRIAL.name,
                    "python": sys.executable,
                    "weightsRoot": f"{share.point}/nas",
                }
                for name in ("one", "two")
            ],
        },
    }
    lines = "\n".join(known)
    sh(server, f"printf '%s\\n' '{lines}' >{home}/.ssh/known_hosts")
    sh(server, f"printf '%s' '{json.dumps(experiment)}' >{home}/digits.yml")
    sh(server, f"chown -R {TRIAL.name} {home}")
    data = server.python_argv(_DATA, f"{share.folder}/digits.npz")
    assert server.as_user("mkdir", f"{share.folder}/hosts").code == 0
    made = server.as_user(*data, limit_s=280)
    assert made.code == 0, made

    run = server.python_argv("-m", "dispatcher.cli", "run", f"{home}/digits.yml")
    ended = server.start(*server.user_argv(*run)).wait(280)
    logs = server.run("sh", "-c", f"tail -n 40 {home}/experiments/*/logs/*")
    assert ended.code == 0, (ended, logs.out)

    journal = sh(server, f"ls {home}/experiments/*/journal.sqlite").strip()
    checked = server.python("-m", "tests.support.checker", journal)
    assert (checked.code, checked.out.strip()) == (0, "no promise was broken"), checked
    told = json.loads(server.python(_LOOK, journal).out)
    ran = {trial: worker for trial, _, worker, _ in told["ran"]}
    assert len(ran) == TRIALS
    assert set(ran.values()) == {"one", "two"}
    crossed = [trial for trial, parent, _ in told["born"] if parent is not None
               and ran[parent] != ran[trial]]  # fmt: skip
    assert crossed, "no child ran on another machine than its parent"
    values = {trial: value for trial, _, value in told["born"]}
    founders = max(values[trial] for trial in range(4))
    assert max(values.values()) >= founders, "inheriting did not help"
    assert max(values.values()) > 0.85

    # Clocks were wrong to the end, and what the head wrote down is told by its own.
    right = clock(server)
    assert clock(share.one) - right > FAST_S / 2
    assert clock(share.two) - right < SLOW_S / 2
    first, last = json.loads(server.python(_MOMENTS, journal).out)
    assert right - 3600 < first <= last <= right + 1
