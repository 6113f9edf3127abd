"""A shell in the pod of a worker: over a server of ours, and a kubectl that runs it here."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from dispatcher.errors import PermanentBackendError
from dispatcher.platforms.allocations.allocation import allocation_name, service_label
from dispatcher.platforms.allocations.incarnation import Incarnation, write_incarnation
from dispatcher.platforms.given import Given
from dispatcher.platforms.kubernetes.api.server import ApiServer
from dispatcher.platforms.kubernetes.bodies import selector_of
from dispatcher.platforms.kubernetes.shell import ShellInPod, whereabouts_there
from tests.support.kubernetes import api_server
from tests.support.workers import agent_config
from tests.unit.platforms.kubernetes.test_bodies import section
from trial_runtime.agent.config import TrialSpec

RANK = "batch.kubernetes.io/job-completion-index"
WORKER, EXPERIMENT = "kubernetes-2", "lab-1"
NAME = allocation_name(service_label(EXPERIMENT, "kubernetes-1"), WORKER, 3)


class Scene:
    """A worker whose third pod is there, and a kubectl."""

    def __init__(self, folder: Path, client: ApiServer, there: api_server.ApiServer) -> None:
        self.ran: list[list[str]] = []
        self.there = there
        part = section(
            kubeconfig=str(folder / "k"),
            context="one",
            python=sys.executable,
            workFolder=str(folder / "pod"),
            environment={"OWN": "1"},
        )
        variables = {"PLAIN": "literal:2", "KEY": "env:KEY_OF_MINE"}
        trial = TrialSpec(str(folder), command="true", environment=variables)
        config = replace(agent_config(folder, WORKER, trial=trial), experiment=EXPERIMENT)
        self.given = Given(
            *(WORKER, part, part, config, folder, None),
            lambda: pytest.fail("nothing is brought anywhere"),
            lambda: "",
        )
        write_incarnation(self.given.records, Incarnation(3, "t", "ordered"))
        self.work = folder / "pod/experiments" / EXPERIMENT / WORKER / "trials/7/1/work"
        self.work.mkdir(parents=True)
        self.client = client

    def pod(self, job: str, name: str, phase: str = "Running", **annotations: str) -> None:
        labels = {"job-name": job, "app.kubernetes.io/managed-by": "bequeath"}
        labels["bequeath/experiment"] = EXPERIMENT
        self.there.objects.create(
            "pods",
            "trials",
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": labels, "annotations": annotations},
                "spec": {"containers": [{"name": "agent", "image": "i"}]},
                "status": {"phase": phase},
            },
        )

    def _kubectl(self, argv: Sequence[str], environment: Mapping[str, str]) -> int:
        """Run the command here."""
        self.ran.append(list(argv))
        own = {**environment, "OWN": "1", "BEQUEATH_SECRET_KEY": "secret"}  # as its container has
        return subprocess.run(argv[argv.index("--") + 1 :], env=own, check=False).returncode

    def open(self, *command: str, terminal: bool = False) -> int:
        order = whereabouts_there(self.given, 7, 1, 0)
        shell = ShellInPod(self.given, order, self.client, self._kubectl)
        return shell.open(command, terminal=terminal)


@pytest.fixture
def scene(
    tmp_path: Path, client: ApiServer, there: api_server.ApiServer, monkeypatch: pytest.MonkeyPatch
) -> Scene:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "kubectl").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(programs))
    return Scene(tmp_path, client, there)


def test_it_is_in_the_pod_that_the_worker_has_now(scene: Scene) -> None:
    """Mutations: the pod of another worker or another incarnation, or one that is over; another
    cluster than the file names; secrets in a command line; another folder than the trial's."""
    scene.pod(NAME.replace(WORKER, "kubernetes-1"), "a")
    scene.pod(f"{NAME[:-1]}2", "b")
    scene.pod(NAME, "c", "Failed")
    scene.pod(NAME, "d")
    out = scene.work / "seen"
    code = f"import json, os; json.dump([dict(os.environ), os.getcwd()], open({str(out)!r}, 'w'))"
    assert scene.open(sys.executable, "-c", code) == 0
    (argv,) = scene.ran
    at = argv.index("--")
    kubeconfig = f"--kubeconfig={scene.given.section.kubeconfig}"
    assert argv[:at] == [
        *("kubectl", "--namespace=trials", kubeconfig, "--context=one", "exec", "--stdin"),
        *("d", "--container=agent"),
    ]
    variables, folder = json.loads(out.read_text())
    assert folder == str(scene.work)
    assert (variables["OWN"], variables["PLAIN"]) == ("1", "2")
    assert variables["BEQUEATH_EXPERIMENT"] == EXPERIMENT
    assert "KEY" not in variables
    assert "BEQUEATH_SHELL" not in variables
    assert "BEQUEATH_SECRET_KEY" not in variables
    assert sum(map(len, argv)) < 6000, "it has to fit in the address of a request"
    order = json.loads(base64.b64decode(argv[-1]))
    assert order["environment"] == {"PLAIN": "2"}


def test_of_several_pods_it_is_the_first(scene: Scene) -> None:
    """Where the server numbers them."""
    for name, rank in (("a", "1"), ("b", "10"), ("c", "0"), ("d", "2")):
        scene.pod(NAME, name, **{RANK: rank})
    assert scene.open(sys.executable, "-c", "pass") == 0
    assert "c" in scene.ran[0]


def test_a_terminal_is_asked_for_and_the_exit_code_is_that_of_the_command(scene: Scene) -> None:
    scene.pod(NAME, "d")
    assert scene.open(sys.executable, "-c", "raise SystemExit(7)", terminal=True) == 7
    assert "--tty" in scene.ran[0]


@pytest.mark.parametrize("case", ["waits", "gone", "never"])
def test_without_a_pod_one_sentence_says_why(scene: Scene, case: str) -> None:
    wanted = {
        "waits": "it is Pending",
        "gone": "it has gone, or was never there",
        "never": "it never had one",
    }[case]
    if case == "waits":
        scene.pod(NAME, "d", "Pending")
    if case == "never":
        os.unlink(scene.given.records / "allocation.json")
    with pytest.raises(PermanentBackendError) as caught:
        scene.open()
    assert caught.value.message == f"there is no pod to open a shell in: {wanted}"
    assert scene.ran == []


def test_without_kubectl_it_says_what_to_type_where_it_is(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scene.pod(NAME, "d")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PermanentBackendError) as caught:
        scene.open(terminal=True)
    assert "exec --stdin --tty d --container=agent -- /bin/sh" in (caught.value.hint or "")


def test_an_experiment_that_is_no_label_is_looked_for_among_all(scene: Scene) -> None:
    assert selector_of("lab-1").endswith(",bequeath/experiment=lab-1")
    assert selector_of("läb-1") == "app.kubernetes.io/managed-by=bequeath"


def test_among_all_it_is_none_of_another_experiment(scene: Scene) -> None:
    """Mutation: one opens a shell in somebody else's pod, whose worker has the same name."""
    config = replace(scene.given.config, experiment="_lab-1")
    scene.given = dataclasses.replace(scene.given, config=config)
    scene.pod(NAME.replace("lab-1", "theirs-1"), "theirs")
    with pytest.raises(PermanentBackendError, match="it has gone, or was never there"):
        scene.open()
    scene.pod(allocation_name(service_label("_lab-1", "kubernetes-1"), WORKER, 3), "d")
    order = whereabouts_there(scene.given, 7, 1, 0)
    ShellInPod(scene.given, order, scene.client, lambda *_: 0).open([], terminal=False)
