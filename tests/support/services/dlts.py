"""A DLTS cluster of ours behind its dashboard, judged by its contract in both roles."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import formatdate
from pathlib import Path
from typing import Any

from tests.support.services.contract import OpenApi
from tests.support.services.machines import OUT_OF_MEMORY, PREEMPTED, STOPPED, PlayedJob
from tests.support.services.server import TOKEN, Asked, PlayedService, Refusal, Reply, serving

CONTRACT = Path(__file__).parents[2] / "contracts/dlts/dashboard.openapi.yaml"

#: Its user, cluster and team.
USER, CLUSTER, TEAM = "alice@lab.org", "lab", "research"

#: The message about a job that finds no place.
NO_ROOM = "Waiting for resource: 1 GPU of the type P40"

_JOB = re.compile(r"/api/(v2/)?clusters/[^/]+/jobs/(?P<id>[^/]+)(?P<rest>/.*)?")
_TEAM = re.compile(r"/api/teams/(?P<team>[^/]+)/clusters/[^/]+")
_CLUSTER = re.compile(r"/clusters/(?P<cluster>[^/]+)")


@functools.cache
def contract() -> OpenApi:
    """The contract."""
    return OpenApi(CONTRACT)


class Dlts(PlayedService):
    """The cluster.

    Attributes:
        gpus: what its team has, by the type of GPU, as the dashboard keeps it.
        refusal_text: the error with which it takes no job; empty: it takes them.
        needs_approval: names of jobs that nobody has approved.
        messages: about jobs, by name.
        log: of a job, in place of what it has printed, by name.
        is_broken: whether its database fails, which it answers with nothing.
    """

    tells_restarts = False
    waiting_word, running_word = "queued", "running"

    def __init__(self, folder: Path, places: int = 4) -> None:
        self.contract = contract()
        self.gpus: dict[str, Any] = {"P40": {"num_gpu_per_node": 4}, "V100": {}}
        self.refusal_text = ""
        self.needs_approval: set[str] = set()
        self.messages: dict[str, str] = {}
        self.log: dict[str, Any] = {}
        self.is_broken = False
        self.password_file = folder / "password"
        self.password_file.write_text(f"{TOKEN}\n")
        self._numbers = itertools.count(1)
        super().__init__(folder, places)

    # -- the judge -------------------------------------------------------------------------------

    def authenticate(self, asked: Asked) -> None:
        """See :class:`PlayedService`: by the address."""
        if asked.query.get("email") != USER or asked.query.get("password") not in self.tokens:
            raise Refusal(403, "", "Invalid token")

    def judge_request(self, asked: Asked) -> list[str]:
        """See :class:`PlayedService`."""
        return self.contract.request(
            asked.method, asked.path, asked.query, asked.kind, asked.document
        )

    def judge_answer(self, asked: Asked, reply: Reply) -> list[str]:
        """See :class:`PlayedService`."""
        document = reply.document
        if isinstance(document, list):  # the rest is made as these are
            document = document[:20]
        return self.contract.answer(asked.method, asked.path, reply.status, reply.kind, document)

    def refusal(self, refusal: Refusal) -> Reply:
        """See :class:`PlayedService`: as a text."""
        return Reply(refusal.status, str(refusal) or "no", "text/plain")

    # -- what is asked ---------------------------------------------------------------------------

    def perform(self, asked: Asked) -> Reply:
        """See :class:`PlayedService`."""
        cluster = _CLUSTER.search(asked.path)
        if cluster is None or cluster["cluster"] != CLUSTER:
            raise Refusal(404, "", "Cluster is not found")
        if (team := _TEAM.fullmatch(asked.path)) is not None:
            if team["team"] != TEAM:
                raise Refusal(404, "", "Team is not found")
            return Reply(200, {"metadata": json.dumps(self.gpus)})
        if asked.path.endswith("/jobs"):
            return self._create(asked.document) if asked.method == "POST" else self._list(asked)
        match = _JOB.fullmatch(asked.path)
        assert match is not None
        return self._of_job(asked, match["id"], match["rest"] or "")

    def _create(self, document: Mapping[str, Any]) -> Reply:
        if document["vcName"] != TEAM:
            return Reply(200, {"error": "Access Denied!"})
        if self.refusal_text:
            return Reply(200, {"error": self.refusal_text})
        variables = {each["name"]: each["value"] for each in document["env"]}
        command = ["bash", "-c", document["cmd"]]
        id_ = self._add(PlayedJob(document["jobName"], [command], [variables], document))
        return Reply(200, {"jobId": id_})

    def _list(self, asked: Asked) -> Reply:
        """All that have not ended, and the newest of the others."""
        if self.is_broken:
            return Reply(200, [])
        jobs = [x for x in self.machines.jobs.items() if x[1].name not in self.hidden]
        jobs.sort(key=lambda each: -each[1].created)
        active = [x for x in jobs if self._status(x[1]) not in ("killed", "finished", "failed")]
        ended = [x for x in jobs if x not in active][: int(asked.query.get("limit", 10))]
        rows = [self._row(id_, job) for id_, job in sorted(active + ended, key=lambda x: x[0])]
        return Reply(200, rows)

    def _of_job(self, asked: Asked, id_: str, rest: str) -> Reply:
        job = self.machines.jobs.get(id_)
        if rest == "/log":
            log = "" if job is None else job.output.read_text(errors="replace")
            given = log if job is None else self.log.get(job.name, log)
            return Reply(200, {"log": given, "cursor": None})
        if rest == "/status":
            if job is None:
                return Reply(200, {"result": f"Cannot kill the job. Job ID: {id_}"})
            self.machines.stop(id_, grace_s=5.0)
            if job.cause == PREEMPTED:
                job.cause = STOPPED
            return Reply(200, {"result": "Success, the job is scheduled to be terminated."})
        if job is None or self.is_broken:
            return Reply(200, {})
        return Reply(200, {**self._row(id_, job), "errorMsg": self._error(job)})

    # -- what jobs look like ---------------------------------------------------------------------

    def _add(self, job: PlayedJob) -> str:
        id_ = f"{next(self._numbers):08}-0000-4000-8000-000000000000"
        self.machines.add(id_, job)
        return id_

    def _status(self, job: PlayedJob) -> str:
        if job.word:
            return job.word
        if job.waits:
            return "unapproved" if job.name in self.needs_approval else "queued"
        if job.runs:
            return "running" if job.dies_at is None else "killing"
        ends = {STOPPED: "killed", PREEMPTED: "paused"}
        return ends.get(job.cause, "failed" if job.code or job.cause else "finished")

    def _error(self, job: PlayedJob) -> str:
        return "OOMKilled: the container had no memory left" if job.cause == OUT_OF_MEMORY else ""

    def _row(self, id_: str, job: PlayedJob) -> dict[str, Any]:
        usual = NO_ROOM if self._status(job) == "queued" else ""
        detail: dict[str, str] = {"message": self.messages.get(job.name, usual)}
        for field, moment in (("startedAt", job.started), ("finishedAt", job.ended)):
            if moment is not None:
                detail[field] = datetime.fromtimestamp(moment, UTC).isoformat()
        return {
            "jobId": id_,
            "jobName": job.name,
            "userName": USER,
            "vcName": TEAM,
            "jobStatus": self._status(job),
            "jobStatusDetail": [detail],
            "jobParams": job.document,
            "jobTime": formatdate(job.created, usegmt=True),
            "priority": 100,
        }

    # -- for tests -------------------------------------------------------------------------------

    def foreign(self, name: str) -> None:
        """See :class:`PlayedService`."""
        self._add(PlayedJob(name, [["sleep", "1000"]], [{}], {"jobName": name, "env": []}))

    def fill(self, label: str, many: int) -> None:
        """See :class:`PlayedService`."""
        for number in range(many):
            self.foreign(f"{label}-worker-{number}")

    def shown(self, name: str) -> str:
        """See :class:`PlayedService`."""
        job = self.job(name)
        return str([self._row(self.ids(name)[-1], job), job.variables])

    def renew(self, token: str) -> None:
        """See :class:`PlayedService`."""
        self.password_file.write_text(f"{token}\n")


class PlayedDlts:
    """See :class:`~tests.support.services.played.PlayedPlatform`."""

    @contextlib.contextmanager
    def serving(self, folder: Path, places: int) -> Iterator[Dlts]:
        """See :class:`PlayedPlatform`."""
        (folder / "service").mkdir(exist_ok=True)
        with serving(Dlts(folder / "service", places)) as service:
            yield service

    def section(self, service: PlayedService, folder: Path) -> dict[str, Any]:
        """See :class:`PlayedPlatform`."""
        assert isinstance(service, Dlts)
        return {
            "platform": "dlts",
            "address": service.address,
            "cluster": CLUSTER,
            "team": TEAM,
            "email": USER,
            "password": f"file:{service.password_file}",
            "image": "our/own:1",
        }


DLTS = PlayedDlts()
