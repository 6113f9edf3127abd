"""Jobs of a service of Google Cloud, in what those of all its services have in common."""

from __future__ import annotations

import contextlib
import re
import shlex
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dispatcher.errors import BackendError, PermanentBackendError
from dispatcher.findings import Finding, Severity
from dispatcher.http_services.client import HttpAnswer
from dispatcher.http_services.errors import AlreadyThere, Invalid, NotThere, Unreachable
from dispatcher.http_services.server_clock import moment_of
from dispatcher.platforms.allocations.allocation import Gone
from dispatcher.platforms.google_cloud import in_job
from dispatcher.platforms.google_cloud.apis import GoogleApis
from dispatcher.platforms.google_cloud.section import OWN_LABELS, GoogleService
from dispatcher.platforms.http_jobs.jobs import JobEnd, JobOrder, JobService, ServiceJob, ran_out
from dispatcher.platforms.http_jobs.pages import Pages
from dispatcher.remote_python.bundle import module_alone

#: What stands for a secret in the script of a job, where jobs share no folder with this machine.
SECRET_PLACE = "bequeath-secret"  # noqa: S105 - no secret itself

#: Labels of a job: of its order, its service, its experiment, and the order's digest.
ATTEMPT, SERVICE, EXPERIMENT, MARK = (
    f"{OWN_LABELS}{word}" for word in ("attempt", "service", "experiment", "mark")
)

#: What a service says of an end, and what that was. Machines that are not to be had are asked for
#: again as if somebody had taken them.
_ENDS = (
    (re.compile(r"out[- ]of[- ]memory|\bOOM", re.IGNORECASE), Gone.OUT_OF_MEMORY),
    (re.compile(r"preempt", re.IGNORECASE), Gone.PREEMPTED),
    (re.compile(r"resources are insufficient|stock-?out", re.IGNORECASE), Gone.CANCELLED),
    (re.compile(r"maximum running time|exceeded .*timeout", re.IGNORECASE), Gone.WALL_TIME),
    (re.compile(r"internal error|VM maintenance", re.IGNORECASE), Gone.NODE_LOST),
)


class GoogleJobs(JobService):
    """Jobs of one service of Google Cloud, see :class:`JobService`. One of ours writes how its jobs
    are asked for, and how they are found.

    Args:
        section: the service's part of the file.
        label: the beginning of the names of all its jobs.
        api: the service, as in ``endpoints`` of the file.
        host: the first part of its address, where that is another word.
    """

    def __init__(self, section: GoogleService, label: str, api: str, host: str = "") -> None:
        self.apis = GoogleApis(section)
        super().__init__(self.apis.of(api, host))
        self.label = label
        self.pages = Pages(self.page)
        self._python, self._wall_s = section.python, section.wall_s
        self._project_id = section.project
        self._unused: set[str] = set()  # names of secrets whose jobs may not be there

    # -- for each service ------------------------------------------------------------------------

    @abstractmethod
    def ask_for(self, order: JobOrder, command: Sequence[str]) -> None:
        """Ask for a job. Raises ``BackendError``.

        Args:
            order: of the job.
            command: of each of its nodes.
        """
        ...

    @abstractmethod
    def page(self, token: str) -> tuple[Sequence[ServiceJob], str]:
        """Return a page of the list, and the token of the next one."""
        ...

    @abstractmethod
    def path(self, id_: str) -> str:
        """Return the path of a job below the service's address."""
        ...

    def more_findings(self) -> Iterator[Finding]:
        """Yield what is found of the service before the start, beside that it answers. Raises
        ``BackendError``."""
        yield from ()

    # -- for all ---------------------------------------------------------------------------------

    def findings(self) -> Iterator[Finding]:
        """See :class:`JobService`: whether it knows us and the project, and what jobs find of
        it."""
        self.page("")
        text = f"{self.where} lists jobs of the project {self._project_id}"
        yield Finding("platform", Severity.OK, text)
        yield from self.more_findings()

    def create(self, order: JobOrder) -> None:
        """See :class:`JobService`."""
        script = order.script
        if order.nodes > 1:
            variable, rank = self.rank_variable, self._asking(in_job.RANK)
            script = f"{variable}=$({rank}) || exit 69; export {variable}; {script}"
        if order.secret:
            self._unused.add(order.name)
            address = self.apis.keep_secret(order.name, order.secret, labels_of(order))
            script = script.replace(f"'{SECRET_PLACE}'", '"$s"')
            script = f"s=$({self._asking(address)}) || exit 69; {script}"
        try:
            self.ask_for(order, ["sh", "-c", script])
            self._unused.discard(order.name)
        except AlreadyThere:
            raise
        except PermanentBackendError:
            self._forget(order.name)
            raise

    def _asking(self, question: str) -> str:
        """A command by which a job finds out something about itself."""
        program = module_alone(Path(in_job.__file__), in_job.VARIABLE, question)
        return shlex.join([self._python, *program])

    def list(self) -> Sequence[ServiceJob]:
        """See :class:`JobService`."""
        return self.pages.look()

    def stop(self, job: ServiceJob, grace_s: float) -> None:
        """See :class:`JobService`: the service has a grace of its own."""
        asked, path = f"cancel the job {job.name!r}", f"{self.path(job.id)}:cancel"
        try:
            self.client.ask("POST", path, asked=asked, body={}, is_repeatable=True)
        except (Invalid, NotThere):  # as it says of one that has ended, or has been removed
            there = self.find(job.name)
            if there is not None and not isinstance(self.states.get(there.word), Gone):
                raise
        self._forget(job.name)

    def why(self, job: ServiceJob) -> str:
        """See :class:`JobService`: what the service has logged of it last."""
        return "".join(self.apis.lines(job.id, of_service=True, most=1)[-1:])

    def end_of(self, job: ServiceJob) -> JobEnd:
        """See :class:`JobService`: by what its error says, and the last line of its log."""
        own, traceback, _ = job.reason.partition("Traceback")
        gone = next((each for pattern, each in _ENDS if pattern.search(own)), None)
        meaning = self.states.get(job.word)
        if gone is None and meaning is Gone.CANCELLED and ran_out(job, self._wall_s):
            gone = Gone.WALL_TIME
        if gone is not None or traceback or meaning is not Gone.FAILED:
            return JobEnd(gone, job.reason)
        try:
            lines = self.apis.lines(job.id, most=20)
        except PermanentBackendError:
            lines = []
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return JobEnd(gone, ": ".join(filter(None, (job.reason, last))))

    def output(self, name: str) -> str:
        """See :class:`JobService`."""
        job = self.pages.of(name) or self.find(name)
        return "" if job is None else "\n".join(self.apis.lines(job.id))

    def remove(self, job: ServiceJob) -> None:
        """See :class:`JobService`: its secret. Not all services remove records."""
        self._forget(job.name)

    def close(self) -> None:
        """See :class:`JobService`. Secrets are removed whose jobs were never had."""
        with contextlib.suppress(BackendError):
            for name in [each for each in self._unused if self.find(each) is None]:
                self._forget(name)
        self.apis.close()

    def _forget(self, name: str) -> None:
        self._unused.discard(name)
        if self.secret_place:
            self.apis.forget_secret(name)


def page_of(answer: HttpAnswer, key: str) -> tuple[Sequence[Mapping[str, Any]], str]:
    """The rows of a page, which has no field for none, and the token of the next one.

    Args:
        answer: of the service.
        key: of the field that has them.

    Raises:
        Unreachable: there is no page, such as of a proxy: who is not listed there is not gone.
    """
    if not isinstance(answer.document, Mapping) or "error" in answer.document:
        raise Unreachable("cannot list jobs: the answer is no list")
    return answer.fields.get(key) or (), str(answer.fields.get("nextPageToken") or "")


def labels_of(order: JobOrder) -> dict[str, str]:
    """The labels of a job that are ours."""
    experiment = re.sub(r"[^a-z0-9_-]+", "-", order.experiment.lower())[:63]
    texts = (order.name, order.label, experiment, order.mark)
    return dict(zip((ATTEMPT, SERVICE, EXPERIMENT, MARK), texts, strict=True))


def job_of(document: Mapping[str, Any], id_: str, reason: str, name: str = "") -> ServiceJob:
    """A job of an answer.

    Args:
        document: the answer.
        id_: by which the service knows it.
        reason: of its state.
        name: where no label of ours says it.
    """
    labels = document.get("labels") or {}
    return ServiceJob(
        labels.get(ATTEMPT) or name,
        id_,
        str(document.get("state", "")),
        reason,
        created_at=moment_of(document.get("createTime")),
        started_at=moment_of(document.get("startTime")),
        ended_at=moment_of(document.get("endTime")),
        mark=labels.get(MARK) or "none",
    )
