"""Trials on two machines over a line that is slow and loses packets, against one that does not.

Machines are guests with kernels of their own, since only those can lose packets here; the head
runs on a third one. Nothing but the head's conversation crosses the line: no weights.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from benchmarks.rows import Row, median, row
from benchmarks.run_experiment import TRIALS as CODE
from tests.support import sshd
from tests.system.nfs.first import TRIAL
from tests.system.nfs.rig import Machine, machines, why_not
from tests.system.nfs.test_digits import serve_ssh, sh

#: What each machine sends comes so late, and so much of it never.
DELAY_MS, LOSS_PERCENT = 15, 1
SLOTS = 2
_HOSTS = ("one", "two")
_ROOT = "/srv/weights"
_LIMIT_S = 280

#: Trials a second, between the ends of the first trials and of the last ones.
_RATE = """
import sys
from dispatcher.core import events as e
from tests.support.checker import check_store, read_store
rows = read_store(__import__("pathlib").Path(sys.argv[1]))
assert check_store(__import__("pathlib").Path(sys.argv[1]), over=True) == []
ends = sorted(row.at for row in rows if isinstance(row.event, e.AttemptEnded))
losses = sum(isinstance(row.event, (e.WorkerLost, e.WorkerSuspect)) for row in rows)
first, last = int(sys.argv[2]), len(ends) - int(sys.argv[2])
print((last - first) / (ends[last] - ends[first]), losses)
"""
_TOKEN = """
import sys
from trial_runtime.weights.storage.share import lay_token
lay_token(sys.argv[1])
"""


def run(*, quick: bool = False) -> list[Row]:
    """The row; blocks for some minutes."""
    what = (
        f"trials of 1 s on two machines, {2 * DELAY_MS} ms there and back and {LOSS_PERCENT} % of "
        "packets lost each way, against none of that: trials a second"
    )
    if reason := why_not() or sshd.why_not():
        return [row(what, "", "not measured", None, reason)]
    trials, rounds = (24, 1) if quick else (80, 2)
    plain, bad = [], []
    with (
        tempfile.TemporaryDirectory(prefix="loss-") as folder,
        machines(Path(folder), ["head", *_HOSTS]) as network,
    ):
        head, *hosts = network
        _prepare(head, hosts)
        _rate(head, "warm", 2 * SLOTS * 3)  # brings the code
        for number in range(rounds):
            plain.append(_rate(head, f"plain{number}", trials))
            for machine in network:
                machine.netem(DELAY_MS, LOSS_PERCENT)
            bad.append(_rate(head, f"bad{number}", trials))
            for machine in network:
                machine.netem_off()
    ratio = median([rate for rate, _ in bad]) / median([rate for rate, _ in plain])
    silences = sum(count for _, count in bad)
    detail = (
        f"{median([r for r, _ in bad]):.2f} against {median([r for r, _ in plain]):.2f} a second "
        f"with {len(_HOSTS) * SLOTS} slots, {rounds} × {trials} trials each; through SSH tunnels; "
        f"workers suspect or lost meanwhile: {silences}"
    )
    return [row(what, "≥ 0.9 ×", f"{ratio:.2f} ×", ratio >= 0.9, detail)]


def _prepare(head: Machine, hosts: list[Machine]) -> None:
    home = TRIAL.home
    key = f"{home}/.ssh/id_ed25519"
    made = head.as_user(
        "sh", "-ec", f"mkdir -p {home}/.ssh; ssh-keygen -q -t ed25519 -N '' -f {key}; cat {key}.pub"
    )
    _good(made)
    lines = "\n".join(serve_ssh(machine, made.out.strip()) for machine in hosts)
    sh(head, f"printf '%s\\n' '{lines}' >{home}/.ssh/known_hosts; mkdir {_ROOT}")
    _good(head.python(_TOKEN, _ROOT))
    token = sh(head, f"cd {_ROOT}; tar -c . | base64 -w0")  # as if it were one share
    for machine in (head, *hosts):
        sh(machine, f"mkdir -p {_ROOT}; echo {token} | base64 -d | tar -x -C {_ROOT}")
        sh(machine, f"chown -R {TRIAL.name} {_ROOT} {home}")


def _rate(head: Machine, name: str, trials: int) -> tuple[float, int]:
    """Trials a second, and how often a worker fell silent."""
    home = TRIAL.home
    experiment = {
        "experimentName": name,
        "experimentWorkingDirectory": f"{home}/{name}",
        "tuner": {"className": "tuners_for_benchmarks:Counting", "codeDirectory": str(CODE)},
        "trialFunction": "steady_second:main",
        "trialCodeDirectory": str(CODE),
        "trialConcurrency": len(_HOSTS) * SLOTS,
        "maxTrialNumber": trials,
        "weightsRoot": _ROOT,
        "debug": True,
        "trainingService": {
            "platform": "ssh",
            "reuseMode": "inProcess",
            "slots": SLOTS,
            "machineList": [
                {"host": host, "user": TRIAL.name, "python": sys.executable} for host in _HOSTS
            ],
        },
    }
    sh(
        head,
        f"printf '%s' '{json.dumps(experiment)}' >{home}/{name}.yml; chown {TRIAL.name} {home}/*",
    )
    command = head.python_argv("-m", "dispatcher.cli", "run", f"{home}/{name}.yml")
    _good(head.start(*head.user_argv(*command)).wait(_LIMIT_S))
    journal = sh(head, f"ls {home}/{name}/*/journal.sqlite").strip()
    told = head.python(_RATE, journal, str(2 * len(_HOSTS) * SLOTS // 2), limit_s=120)
    _good(told)
    rate, silences = told.out.split()
    return float(rate), int(silences)


def _good(answer) -> None:  # type: ignore[no-untyped-def]
    if answer.code:
        raise RuntimeError(f"{answer}")


if __name__ == "__main__":
    for line in run(quick="--quick" in sys.argv):
        print(line["what"], "|", line["target"], "|", line["measured"], "|", line["detail"])
