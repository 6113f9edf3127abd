"""The inspection of a training runtime, which says what the pods of our TrainJobs are."""

from __future__ import annotations

from collections.abc import Iterator

from dispatcher.errors import BackendError
from dispatcher.findings import Finding, Severity
from dispatcher.platforms.kubernetes.api.errors import NotAllowed
from dispatcher.platforms.kubernetes.api.kubeconfig import find_access
from dispatcher.platforms.kubernetes.api.server import ApiServer, Document
from dispatcher.platforms.trainer.runtimes import (
    RUNTIMES,
    other_jobs,
    shows_token,
    starts_again,
)
from dispatcher.platforms.trainer.section import TrainerSection

TOPIC = "runtime"


def inspect_runtime(section: TrainerSection) -> Iterator[Finding]:
    """Yield what is found of the runtime of a section. That there is none, or none that would do,
    is found by who has the server try a TrainJob.

    Args:
        section: of the service.
    """
    ref = section.runtime_ref
    access = find_access(section.kubeconfig, section.context or "")
    server = ApiServer(access, section.namespace or "")
    try:
        runtime = server.get(RUNTIMES[ref.kind], ref.name)
    except NotAllowed as error:
        hint = "whether it starts anew what has failed is not known"
        yield Finding(TOPIC, Severity.NOTE, error.message, hint)
    except BackendError:
        return
    else:
        yield from _findings(runtime, section)
    finally:
        server.close()


def _findings(runtime: Document, section: TrainerSection) -> Iterator[Finding]:
    name = section.runtime_ref.name
    if again := starts_again(runtime):
        text = f"{name!r} has started again what has failed ({', '.join(again)})"
        hint = "such a start is refused and ended: have a runtime with 'restartPolicy: Never' and "
        hint += "'backoffLimit: 0', which makes none"
        yield Finding(TOPIC, Severity.NOTE, text, hint)
    if shows_token(runtime) and section.service_account is None:
        text = f"pods of {name!r} see the token of the namespace's usual account"
        hint = "'automountServiceAccountToken: false' in the runtime hides it"
        yield Finding(TOPIC, Severity.NOTE, text, hint)
    if others := other_jobs(runtime):
        text = f"each TrainJob of {name!r} runs {', '.join(others)} as well"
        yield Finding(TOPIC, Severity.NOTE, text, "agents need a runtime of one job alone")
    else:
        yield Finding(TOPIC, Severity.OK, f"there is the {section.runtime_ref.kind} {name!r}")
