"""Training runtimes: the templates, made by administrators, of which TrainJobs are made. Pure.

A TrainJob changes what it has fields for; all else is the runtime's: how often something that has
failed is started again, and what beside the program of a TrainJob runs. Documents have any form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dispatcher.platforms.kubernetes.api.documents import mapping_in, mappings_in, text_of
from dispatcher.platforms.kubernetes.api.server import Document, ObjectKind

API_VERSION = "trainer.kubeflow.org/v1alpha1"

#: Where servers have runtimes, by their kind.
RUNTIMES: Mapping[str, ObjectKind] = {
    "ClusterTrainingRuntime": ObjectKind(
        f"apis/{API_VERSION}", "clustertrainingruntimes", in_namespaces=False
    ),
    "TrainingRuntime": ObjectKind(f"apis/{API_VERSION}", "trainingruntimes"),
}

#: The label of the job of a runtime to which the program of a TrainJob is given, and its value.
STEP, TRAINER = "trainer.kubeflow.org/trainjob-ancestor-step", "trainer"

#: The container that gets the program, and the usual name of its job.
NODE = "node"

#: Policies whose launcher starts the program, by itself and as often as it likes.
_LAUNCHERS = {"mpi": "mpirun", "flux": "flux"}


def job_of(runtime: Document) -> str:
    """The name of the job to which the program of a TrainJob is given; empty if there is none."""
    return text_of(_trainer_job(runtime).get("name"))


def problem_of(runtime: Document) -> str:
    """Why no agent can run in the pods of a runtime: the end of a sentence; empty if one can."""
    policy = mapping_in(mapping_in(runtime, "spec"), "mlPolicy")
    for word, program in _LAUNCHERS.items():
        if isinstance(policy.get(word), Mapping):
            return f"has programs started by {program}, and an agent is one process of each pod"
    if not job_of(runtime):
        return f"has no job with the label {STEP}: {TRAINER}, to which a program is given"
    if not _trainer_container(runtime):
        return f"has no container {NODE!r} in its job {job_of(runtime)!r}"
    return ""


def starts_again(runtime: Document) -> list[str]:
    """The fields by which a runtime has started again what has failed, as they are in effect."""
    found = []
    # JobSets have this policy if none is given, and Jobs that limit.
    policy = _pod(runtime).get("restartPolicy", "OnFailure")
    if policy != "Never":
        found.append(f"restartPolicy: {policy}")
    limit = _job_spec(runtime).get("backoffLimit", 6)
    if limit:
        found.append(f"backoffLimit: {limit}")
    restarts = mapping_in(_job_set(runtime), "failurePolicy").get("maxRestarts")
    if restarts:
        found.append(f"maxRestarts: {restarts}")
    return found


def shows_token(runtime: Document) -> bool:
    """Whether pods see the token of their account: of the namespace's usual one, if none other."""
    return _pod(runtime).get("automountServiceAccountToken") is not False


def other_jobs(runtime: Document) -> Sequence[str]:
    """The names of the jobs that run beside the program of each TrainJob."""
    names = (text_of(each.get("name")) for each in _jobs(runtime))
    return [name for name in names if name != job_of(runtime)]


def _job_set(runtime: Document) -> Mapping[str, Any]:
    return mapping_in(mapping_in(mapping_in(runtime, "spec"), "template"), "spec")


def _jobs(runtime: Document) -> Iterator[Mapping[str, Any]]:
    yield from mappings_in(_job_set(runtime), "replicatedJobs")


def _trainer_job(runtime: Document) -> Mapping[str, Any]:
    for each in _jobs(runtime):
        about = mapping_in(mapping_in(each, "template"), "metadata")
        if mapping_in(about, "labels").get(STEP) == TRAINER:
            return each
    return {}


def _job_spec(runtime: Document) -> Mapping[str, Any]:
    return mapping_in(mapping_in(_trainer_job(runtime), "template"), "spec")


def _pod(runtime: Document) -> Mapping[str, Any]:
    return mapping_in(mapping_in(_job_spec(runtime), "template"), "spec")


def _trainer_container(runtime: Document) -> Mapping[str, Any]:
    containers = mappings_in(_pod(runtime), "containers")
    return next((each for each in containers if each.get("name") == NODE), {})
