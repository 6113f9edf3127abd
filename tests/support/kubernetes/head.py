"""A head in a pod of a real cluster, by the objects of ``bequeath kubernetes manifest``."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from dispatcher.core import events as e
from tests.support.checker import check_store, read_store
from tests.support.kubernetes.real import RealCluster
from tests.support.processes import holds_within

NAME, CLASS = "head", "by-hand"

#: A trial that waits for the test. Any of them may be the first: who is asked for first is not
#: always there first, and the order is that in which they came.
_TRIAL = """
import os, pathlib, threading
import trial_runtime as bq

def main(parameters):
    allowed = pathlib.Path(os.environ["ALLOWED"])
    while not any(takes(allowed, n) for n in range(int(allowed.read_text()))):
        threading.Event().wait(0.1)
    assert os.environ["TOKEN"] == "s3cret"
    return parameters["x"]

def takes(allowed, number):
    permit, own = allowed.with_name(f"permit-{number}"), str(bq.trial_id())
    try:
        os.symlink(own, permit)
    except FileExistsError:
        return os.readlink(permit) == own
    return True
"""


class HeadInPod:
    """An experiment whose head is to run in a pod.

    Args:
        there: the cluster.
        folder: of all its volumes; pods and this machine see it.
        port: on which the head listens: pods of this cluster share the network of this machine.
        service: what stands below ``trainingService`` beside the way to the head.
    """

    def __init__(
        self, there: RealCluster, folder: Path, port: int, service: Mapping[str, Any]
    ) -> None:
        self.there = there
        self.folder = folder
        self.weights, self.state = folder / "weights", folder / "state"
        for each in (self.weights, self.state, folder / "code"):
            each.mkdir()
        (folder / "code/held.py").write_text(_TRIAL)
        self.allow(0)
        known = [{"ip": "127.0.0.1", "hostnames": [f"{NAME}.default"]}]
        self.file = folder / "lab.yml"
        self.file.write_text(json.dumps({
            "trialFunction": "held:main",
            "trialCodeDirectory": str(folder / "code"),
            "trialEnvironment": {"ALLOWED": str(folder / "allowed"), "TOKEN": "env:TOKEN"},
            "trialConcurrency": 2,
            "maxTrialNumber": 8,
            "headGrace": "600s",
            "tuner": {"name": "Random"},
            "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
            "weightsRoot": str(self.weights),
            "channel": {"transport": "tcp", "host": "0.0.0.0", "port": port,
                        "beyondThisMachine": True},
            "trainingService": {
                "platform": "kubernetes",
                "headAddress": f"{NAME}.default",
                # Where there is no DNS. The name that agents look for is that of the Service.
                "pod": {"hostAliases": known},
                "volumes": [{"hostPath": str(folder), "at": str(folder)}],
                **service,
            },
        }))  # fmt: skip

    def allow(self, trials: int) -> None:
        """Let so many trials end, whichever they are."""
        new = self.folder / "allowed.new"
        new.write_text(str(trials))
        new.replace(self.folder / "allowed")

    def objects(self) -> list[dict[str, Any]]:
        """What the command prints."""
        words = ["kubernetes", "manifest", str(self.file), "--name", NAME]
        ran = subprocess.run(
            [sys.executable, "-m", "dispatcher.cli", *words, "--storage-class", CLASS],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert ran.returncode == 0, ran.stderr
        assert f"secret generic {NAME}-secrets --from-literal=TOKEN=" in ran.stderr
        return list(YAML(typ="safe").load_all(ran.stdout))

    def volume(self) -> dict[str, Any]:
        """The volume that the claim is to be bound to."""
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "state"},
            "spec": {
                "capacity": {"storage": "20Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": CLASS,
                "hostPath": {"path": str(self.state)},
            },
        }

    def pods(self, container: str) -> list[dict[str, Any]]:
        """The pods that run, of the head or of agents."""
        return [
            each
            for each in self.there.running()
            if each["spec"]["containers"][0]["name"] == container
        ]

    def agents(self) -> set[str]:
        """The uids of the pods in which agents run: not of the one that looks a place over."""
        pods = [each["metadata"] for each in self.pods("agent")]
        return {each["uid"] for each in pods if "-probe-" not in each["name"]}

    def log(self) -> str:
        """What the head's container has printed."""
        texts = (self.there.folder / "kubelet").glob("pods/*/*/head/log*")
        return "\n".join(each.read_text(errors="replace")[-6000:] for each in texts)

    @property
    def journal(self) -> Path | None:
        """The journal, once it is there."""
        return next(iter(self.state.glob("*/journal.sqlite")), None)

    def events(self) -> list[e.Event]:
        """All that the journal has."""
        return [] if self.journal is None else [row.event for row in read_store(self.journal)]

    def done(self) -> int:
        """How many trials have a result."""
        with contextlib.suppress(sqlite3.Error):  # the store is being made
            return len({x.trial for x in self.events() if isinstance(x, e.FinalReported)})
        return 0

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        """Wait, and show what the head has printed if it never holds."""
        assert holds_within(condition, 240), f"never: {what}\n{self.log()}"

    def complaints(self) -> list[str]:
        """The promises that were broken, once it is over."""
        assert self.journal is not None
        return check_store(self.journal, over=True)
