"""CLOVA NSML of ours, judged by its contract in both roles. It neither stops a run nor says how one
has ended, as far as anybody has read."""

from __future__ import annotations

import base64
import contextlib
import functools
import hmac
import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from dispatcher.platforms.nsml import jobs
from tests.support.services.contract import OpenApi
from tests.support.services.machines import PlayedJob
from tests.support.services.server import TOKEN, Asked, PlayedService, Refusal, Reply, serving

CONTRACT = Path(__file__).parents[2] / "contracts/nsml/clova-nsml.openapi.yaml"

#: Its project, account and type of server.
PROJECT, ACCESS, API_KEY, SERVER = "p-7", "acc3ss-key", "ap1-key-of-tests", 31

#: How wrong the time of a request may be (seconds).
MOST_WRONG_S = 300.0

_RUN = re.compile(r"/projects/[^/]+/runs/(?P<run>[^/]+)")


@functools.cache
def contract() -> OpenApi:
    """The contract."""
    return OpenApi(CONTRACT, gateway={429, 502, 503, 504})


class Nsml(PlayedService):
    """The service.

    Attributes:
        project_status: of its project.
        largest_page: runs on a page, whatever is asked for.
        over_quota: whether it takes no more runs.
    """

    below = "/nsml/v1"
    tells_restarts = False
    tells_states = False

    def __init__(self, folder: Path, places: int = 4) -> None:
        self.contract = contract()
        self.project_status = "CREATED"
        self.largest_page = 1000
        self.over_quota = False
        self.secret_file = folder / "secret"
        self.secret_file.write_text(f"{TOKEN}\n")
        for name, text in (("access", ACCESS), ("api", API_KEY)):
            (folder / name).write_text(text)
        self._numbers = itertools.count(8)
        super().__init__(folder, places)

    # -- the judge -------------------------------------------------------------------------------

    def authenticate(self, asked: Asked) -> None:
        """See :class:`PlayedService`: by the signature, and the time in it."""
        given = {key: asked.headers.get(f"x-ncp-{key}", "") for key in (
            "apigw-timestamp", "iam-access-key", "apigw-signature-v2", "apigw-api-key"
        )}  # fmt: skip
        stamp, access, signature, api_key = given.values()
        query = f"?{urlencode(asked.query)}" if asked.query else ""
        signed = f"{asked.method} {self.below}{asked.path}{query}\n{stamp}\n{access}".encode()
        digests = [hmac.new(x.encode(), signed, "sha256").digest() for x in self.tokens]
        right = [base64.b64encode(digest).decode() for digest in digests]
        if access != ACCESS or api_key != API_KEY or signature not in right:
            raise Refusal(401, "200", "Authentication Failed")
        if abs(int(stamp) / 1000 - self.now()) > MOST_WRONG_S:
            raise Refusal(401, "200", "Authentication Failed: the timestamp has expired")

    def judge_request(self, asked: Asked) -> list[str]:
        """See :class:`PlayedService`. A run of the type Train has a command."""
        found = self.contract.request(
            asked.method, asked.path, asked.query, asked.kind, asked.document
        )
        lacks = asked.method == "POST" and not (asked.document or {}).get("command")
        return found or (["command: a Train server needs one"] if lacks else [])

    def judge_answer(self, asked: Asked, reply: Reply) -> list[str]:
        """See :class:`PlayedService`."""
        document = reply.document
        if isinstance(document, dict) and "runList" in document:  # the rest is made as these are
            document = {**document, "runList": document["runList"][:20]}
        return self.contract.answer(asked.method, asked.path, reply.status, reply.kind, document)

    def refusal(self, refusal: Refusal) -> Reply:
        """See :class:`PlayedService`: as the gateway answers."""
        error = {"errorCode": refusal.code or str(refusal.status), "message": str(refusal) or "no"}
        return Reply(refusal.status, {"error": error})

    # -- what is asked ---------------------------------------------------------------------------

    def perform(self, asked: Asked) -> Reply:
        """See :class:`PlayedService`."""
        if asked.path == "/projects/runs":
            return self._list(asked)
        if asked.path.split("/")[2] != PROJECT:
            raise Refusal(404, "", "there is no such project")
        if asked.path == f"/projects/{PROJECT}":
            about = {"projectName": "nas", "status": self.project_status, "nodeCount": 2}
            return Reply(200, {"projectId": PROJECT, **about})
        if asked.path.endswith("/nas"):
            share = {"nasIp": "10.0.0.9", "nasPath": "/n7", "nasVolumeSize": 500}
            return Reply(200, {"projectId": PROJECT, **share})
        if asked.method == "POST":
            return self._create(asked.document)
        match = _RUN.fullmatch(asked.path)
        job = self.machines.jobs.get(match["run"]) if match else None
        if match is None or job is None:
            raise Refusal(404, "", "there is no such run")
        order = {key: value for key, value in job.document.items() if key in _SHOWN}
        return Reply(200, {**self._row(match["run"], job), **order, "isBareMetal": False})

    def _create(self, document: dict[str, Any]) -> Reply:
        if document["gpuSvrCode"] != SERVER:
            raise Refusal(400, "", f"there is no server of the type {document['gpuSvrCode']}")
        if self.over_quota:
            raise Refusal(403, "", "the quota of the project leaves no room")
        name = document.get("note", "").split(" ")[1]
        nodes = document["nodeCount"]
        ranks = [{"NSML_RANK": f"{n}", "NSML_WORLD_SIZE": f"{nodes}"} for n in range(nodes)]
        self._add(PlayedJob(name, [shlex.split(document["command"])] * nodes, ranks, document))
        return Reply(201, None)

    def _list(self, asked: Asked) -> Reply:
        size = min(int(asked.query.get("pageSize", 10)), self.largest_page)
        start = (int(asked.query.get("page", 1)) - 1) * size
        known = [x for x in self.machines.jobs.items() if x[1].name not in self.hidden]
        rows = [self._row(run, job) for run, job in known[start : start + size]]
        return Reply(200, {"runList": rows, "totalCount": len(known)})

    def _add(self, job: PlayedJob) -> None:
        self.machines.add(str(next(self._numbers)), job)

    def _row(self, run: str, job: PlayedJob) -> dict[str, Any]:
        about = {"projectId": PROJECT, "projectName": "nas", "creator": "alice"}
        return {"runName": run, "runType": "Train", "status": job.word or "A-WORD", **about}

    # -- for tests -------------------------------------------------------------------------------

    def foreign(self, name: str) -> None:
        """See :class:`PlayedService`."""
        document = {"note": f"bequeath {name} {'0' * 32}"}
        self._add(PlayedJob(name, [["sleep", "1000"]], [{}], document))

    def fill(self, label: str, many: int) -> None:
        """See :class:`PlayedService`."""
        for number in range(many):
            self.foreign(f"{label}-worker-{number}")

    def shown(self, name: str) -> str:
        """See :class:`PlayedService`."""
        job = self.job(name)
        return str([self._row(self.ids(name)[-1], job), job.document, job.variables])

    def renew(self, token: str) -> None:
        """See :class:`PlayedService`."""
        self.secret_file.write_text(f"{token}\n")


#: What is shown of an order.
_SHOWN = ("gpuSvrCode", "imageType", "imagePath", "command", "envs", "note")


class PlayedNsml:
    """See :class:`~tests.support.services.played.PlayedPlatform`."""

    @contextlib.contextmanager
    def serving(self, folder: Path, places: int) -> Iterator[Nsml]:
        """See :class:`PlayedPlatform`. Words of runs come soon, and requests cost nothing."""
        (folder / "service").mkdir(exist_ok=True)
        usual = jobs.BEAT_S, jobs.SILENT_S, jobs.BURST
        jobs.BEAT_S, jobs.SILENT_S, jobs.BURST = 0.2, 6.0, 1e6
        try:
            with serving(Nsml(folder / "service", places)) as service:
                yield service
        finally:
            jobs.BEAT_S, jobs.SILENT_S, jobs.BURST = usual

    def section(self, service: PlayedService, folder: Path) -> dict[str, Any]:
        """See :class:`PlayedPlatform`."""
        assert isinstance(service, Nsml)
        keys = service.secret_file.parent
        return {
            "platform": "nsml",
            "address": f"{service.address}{service.below}",
            "project": PROJECT,
            "accessKey": f"file:{keys / 'access'}",
            "secretKey": f"file:{service.secret_file}",
            "apiKey": f"file:{keys / 'api'}",
            "gpuServer": SERVER,
            "image": "our/own:1",
        }


NSML = PlayedNsml()
