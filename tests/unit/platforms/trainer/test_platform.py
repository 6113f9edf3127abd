"""What a file gets to hear before anything is ordered, and what a cluster is asked."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from dispatcher.cli.main import app
from dispatcher.findings import Finding, Severity
from dispatcher.platforms.kubernetes.translation import order_there
from dispatcher.platforms.trainer import TRAINER
from dispatcher.platforms.trainer.kind import TRAIN_JOB
from dispatcher.platforms.trainer.runtimes import problem_of
from tests.support.kubernetes import api_server
from tests.support.kubernetes.train_jobs import runtime, train_jobs_of_2_0, train_jobs_of_2_1
from tests.support.kubernetes.trainer_controller import trainer
from tests.unit.platforms.kubernetes.test_bodies import order
from tests.unit.platforms.kubernetes.test_platform import OPEN, kubeconfig, problems
from tests.unit.platforms.trainer.test_bodies import section
from trial_runtime.agent.config import ProbeQuestions

Served = api_server.ApiServer


@pytest.fixture(autouse=True)
def _nothing_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)


# -- the file --------------------------------------------------------------------------------------


def wrong(folder: Path, **keys: Any) -> dict[str, str]:
    usual = {"platform": "trainer", "kubeconfig": kubeconfig(folder), "runtimeRef": "torch"}
    return problems(folder, {**usual, **keys}, channel=OPEN)


@pytest.mark.parametrize(
    "ref, kind",
    [
        ("torch", "ClusterTrainingRuntime"),
        ({"name": "torch"}, "ClusterTrainingRuntime"),
        ({"name": "torch", "kind": "trainingRuntime"}, "TrainingRuntime"),
    ],
)
def test_a_runtime_is_named_by_its_name_alone_or_with_its_kind(
    ref: Any, kind: str, tmp_path: Path
) -> None:
    assert wrong(tmp_path, runtimeRef=ref) == {}
    found = section(runtimeRef=ref).runtime_ref
    assert (found.name, found.kind) == ("torch", kind)


@pytest.mark.parametrize(
    "keys, at, text",
    [
        ({"priorityClass": "low"}, "priorityClass", "for which a TrainJob has no field"),
        ({"imagePullPolicy": "always"}, "imagePullPolicy", "have it in the training runtime"),
        ({"pod": {"hostNetwork": True}}, "hostNetwork", "here is affinity, schedulingGates, sec"),
        ({"container": {"stdin": True}}, "stdin", "for which a TrainJob has no field"),
        ({"runtimeRef": {"name": "a", "kind": "Job"}}, "kind", "TrainingRuntime"),
        ({"runtimeRef": "A_b"}, "name", "must be the name of an object of Kubernetes"),
    ],
)
def test_what_no_train_job_can_say_is_refused_at_its_place(
    keys: dict[str, Any], at: str, text: str, tmp_path: Path
) -> None:
    """Mutation: it is dropped by the server, and pods lack it without a word."""
    found = wrong(tmp_path, **keys)
    assert text in found.pop(at)
    assert found == {}


def test_what_one_can_say_is_taken(tmp_path: Path) -> None:
    pod = {"affinity": {}, "securityContext": {"fsGroup": 1}, "schedulingGates": []}
    assert wrong(tmp_path, pod=pod, container={"securityContext": {}}, queue="q") == {}


def test_an_agent_leaves_the_variables_of_the_trainer_alone_and_writes_its_last_words() -> None:
    """The probe answers where Kubernetes keeps it: not all pods keep what they print."""
    there = order_there(order(), section(), token="T").config
    assert (there.launched, there.rank_variable) == (True, "JOB_COMPLETION_INDEX")
    assert there.probe is None
    config = replace(order().config, probe=ProbeQuestions("a.answer", (), (), ""))
    asked = dataclasses.replace(order(), config=config)
    probe = order_there(asked, section(), token="T").config.probe
    assert probe is not None
    assert probe.answer == "/dev/termination-log"


# -- the cluster -----------------------------------------------------------------------------------


def findings(there: Served, folder: Path, **keys: Any) -> list[Finding]:
    return list(TRAINER.inspect(section(kubeconfig=str(there.kubeconfig(folder)), **keys)))


def of(seen: list[Finding], topic: str) -> list[Finding]:
    return [each for each in seen if each.topic == topic]


@pytest.mark.parametrize("kind", ["ClusterTrainingRuntime", "TrainingRuntime"])
def test_a_cluster_that_is_in_order(kind: str, there: Served, tmp_path: Path) -> None:
    ref = {"name": "of-agents", "kind": kind}
    seen = findings(there, tmp_path, runtimeRef=ref, serviceAccount="a")
    assert {each.severity for each in seen} == {Severity.OK}
    texts = [each.text for each in seen]
    assert "it has TrainJobs of trainer.kubeflow.org/v1alpha1" in texts
    assert "it takes a TrainJob with the image 'img:1'" in texts
    assert f"there is the {kind} 'of-agents'" in texts
    assert there.objects.all("trainjobs") == []


def test_what_a_usual_runtime_does_by_itself_is_said(there: Served, tmp_path: Path) -> None:
    seen = findings(there, tmp_path, runtimeRef="torch-distributed")
    assert [each for each in seen if each.severity is Severity.PROBLEM] == []
    again, token, found = of(seen, "runtime")
    assert "restartPolicy: OnFailure, backoffLimit: 6" in again.text
    assert "'restartPolicy: Never'" in again.hint
    assert "see the token" in token.text
    assert found.severity is Severity.OK


@pytest.mark.parametrize("kind", ["ClusterTrainingRuntime", "TrainingRuntime"])
def test_a_runtime_that_is_not_there(kind: str, there: Served, tmp_path: Path) -> None:
    seen = findings(there, tmp_path, runtimeRef={"name": "lost", "kind": kind})
    (problem,) = (each for each in seen if each.severity is Severity.PROBLEM)
    where = " in 'trials'" if kind == "TrainingRuntime" else ""
    assert problem.text == f"there is no {kind} 'lost'{where}"
    assert problem.keys == (("runtimeRef",),)
    assert "kubectl get" in problem.hint
    assert of(seen, "runtime") == []


def test_a_runtime_that_may_not_be_read_is_judged_by_the_cluster(
    there: Served, tmp_path: Path
) -> None:
    """A Role gives no right to what is the cluster's. The webhook of TrainJobs knows it."""
    there.denied.add(("get", "clustertrainingruntimes"))
    seen = findings(there, tmp_path)
    assert [each for each in seen if each.severity is Severity.PROBLEM] == []
    (note,) = of(seen, "runtime")
    assert note.severity is Severity.NOTE
    assert "clustertrainingruntimes is forbidden" in note.text
    (problem,) = of(findings(there, tmp_path, runtimeRef="lost"), "job")
    assert problem.severity is Severity.PROBLEM
    assert "must be created before the TrainJob is created" in problem.text
    assert problem.keys == (("runtimeRef",),)


RUNTIMES: dict[str, tuple[dict[str, Any], str]] = {
    "of MPI": ({"policy": {"mpi": {}}}, "has programs started by mpirun"),
    "of Flux": ({"policy": {"flux": {}}}, "has programs started by flux"),
    "without the label": ({"step": "other"}, "has no job with the label"),
    "without the container": ({"container": "main"}, "has no container 'node' in its job 'node'"),
}


@pytest.mark.parametrize("given, text", RUNTIMES.values(), ids=RUNTIMES)
def test_a_runtime_in_which_no_agent_can_run(
    given: dict[str, Any], text: str, tmp_path: Path
) -> None:
    operators = trainer(runtime("odd", **given))
    with api_server.serving(crds=[each.crd for each in operators]) as there:
        there.keep(operators[1].crd, *operators[1].given)
        seen = findings(there, tmp_path, runtimeRef="odd")
    (problem,) = (each for each in seen if each.severity is Severity.PROBLEM)
    assert f"the ClusterTrainingRuntime 'odd' {text}" in problem.text
    assert problem.keys == (("runtimeRef",),)


@pytest.mark.parametrize("policy", [{"numNodes": 2}, {"jax": {}}, {"xgboost": {}}, {"torch": {}}])
def test_policies_that_leave_a_program_alone(policy: dict[str, Any]) -> None:
    """They only set variables."""
    assert problem_of(runtime(policy=policy)) == ""


def test_a_runtime_of_several_jobs(tmp_path: Path) -> None:
    made = runtime("many")
    jobs = made["spec"]["template"]["spec"]["replicatedJobs"]
    (step,) = runtime(step="dataset-initializer", job="data", container="data")["spec"]["template"][
        "spec"
    ]["replicatedJobs"]
    jobs.insert(0, step)
    operators = trainer(made)
    with api_server.serving(crds=[each.crd for each in operators]) as there:
        there.keep(operators[1].crd, *operators[1].given)
        seen = findings(there, tmp_path, runtimeRef="many", serviceAccount="a")
    (note,) = of(seen, "runtime")
    assert note.text == "each TrainJob of 'many' runs data as well"


def test_a_version_before(tmp_path: Path) -> None:
    """Its own field is used; what it lacks is said, with the key."""
    operators = trainer(crd=train_jobs_of_2_1())
    with api_server.serving(crds=[each.crd for each in operators]) as there:
        there.keep(operators[1].crd, *operators[1].given)
        seen = findings(there, tmp_path)
        assert [each for each in seen if each.severity is Severity.PROBLEM] == []
        seen = findings(there, tmp_path, wallTime="1h")
        (problem,) = (each for each in seen if each.severity is Severity.PROBLEM)
        assert problem.keys == (("wallTime",),)
        seen = findings(there, tmp_path, pod={"securityContext": {"fsGroup": 1}})
        (problem,) = (each for each in seen if each.severity is Severity.PROBLEM)
        assert problem.text == "its TrainJobs have no field for 'pod.securityContext'"
        assert problem.keys == (("pod",),)


def test_a_version_that_gives_pods_no_labels(tmp_path: Path) -> None:
    operators = trainer(crd=train_jobs_of_2_0())
    with api_server.serving(crds=[each.crd for each in operators]) as there:
        there.keep(operators[1].crd, *operators[1].given)
        seen = findings(there, tmp_path)
    (problem,) = (each for each in seen if each.severity is Severity.PROBLEM)
    assert "neither 'runtimePatches' nor 'podTemplateOverrides'" in problem.text
    assert problem.hint == "its administrators install Kubeflow Trainer 2.1 or later"


def test_a_cluster_without_it(tmp_path: Path) -> None:
    with api_server.serving() as there:
        seen = findings(there, tmp_path)
    (problem,) = (each for each in seen if each.severity is Severity.PROBLEM)
    assert problem.text == "it has no TrainJobs of trainer.kubeflow.org/v1alpha1"
    assert problem.hint == "its administrators install Kubeflow Trainer 2.1 or later"


def test_its_role_is_printed() -> None:
    words = ["kubernetes", "rights", "alice", "--platform", "trainer"]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0, ran.output
    assert "- trainjobs" in ran.output
    assert "- trainingruntimes" in ran.output
    assert "clustertrainingruntimes" not in ran.output, "no Role gives that"
    assert "jobs.batch" not in ran.output
    assert TRAIN_JOB.word == "TrainJob"
