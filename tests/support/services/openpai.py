"""An OpenPAI cluster of ours, judged by its contract in both roles."""

from __future__ import annotations

import contextlib
import functools
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.support.services.contract import OpenApi
from tests.support.services.machines import OUT_OF_MEMORY, PREEMPTED, STOPPED, PlayedJob
from tests.support.services.server import (
    TOKEN,
    Asked,
    PlayedService,
    Refusal,
    Reply,
    serving,
)

CONTRACTS = Path(__file__).parents[2] / "contracts/openpai"
PROTOCOL = (
    "https://raw.githubusercontent.com/microsoft/openpai-protocol/master/schemas/v2/schema.yaml"
)

#: The contract says of ``extras`` that any information may stand there.
EXTRAS = "#/components/schemas/JobProtocol/allOf/1/properties/extras"

USER = "alice"

#: The warning about a job that finds no place.
NO_ROOM = "FailedScheduling: 0/1 nodes are available: 1 Insufficient cpu."

_JOB = re.compile(r"/api/v2/jobs/(?P<user>[^/~]+)~(?P<name>[^/]+)(?P<rest>/.*)?")
_TAGS = re.compile(r"<%(.*?)(%>|\Z)", re.DOTALL)
_SECRET = re.compile(r"\s*\$secrets\.(\w+)\s*")


@functools.cache
def contract() -> OpenApi:
    """The contract, which takes a second to read."""
    protocol = {PROTOCOL: CONTRACTS / "protocol-v2.schema.yaml"}
    return OpenApi(CONTRACTS / "rest-server.openapi.yaml", protocol, open_at=(EXTRAS,))


class OpenPai(PlayedService):
    """The cluster.

    Attributes:
        virtual_clusters: their GPUs, by name.
        storages: whether each is shared, by name.
        read_only: names of storages that nobody may write to.
        allowed: virtual clusters of the user.
        over_quota: whether the user has no quota left.
        warnings: of jobs that wait, by name.
        application: whether the token is for jobs alone.
    """

    below = "/rest-server"

    def __init__(self, folder: Path, places: int = 4) -> None:
        self.contract = contract()
        self.folder = folder
        self.virtual_clusters = {"default": 8, "research": 2}
        self.storages = {"home": True, "scratch": False}
        self.read_only: set[str] = set()
        self.allowed = ["default", "research"]
        self.over_quota = False
        self.warnings: dict[str, str] = {}
        self.application = False
        self.token_file = folder / "token"
        self.token_file.write_text(f"{TOKEN}\n")
        super().__init__(folder, places)

    # -- the judge -------------------------------------------------------------------------------

    def judge_request(self, asked: Asked) -> list[str]:
        """See :class:`PlayedService`. What is not in the contract is the log manager's."""
        if asked.path.startswith("/log-manager/"):
            return []
        found = self.contract.request(
            asked.method, asked.path, asked.query, asked.kind, asked.document
        )
        return found or self._wrong_storages(asked.document)

    def _wrong_storages(self, document: Any) -> list[str]:
        """Judge ``extras.storages``, of which the contract says nothing."""
        extras = document.get("extras") if isinstance(document, dict) else None
        given = (extras or {}).get("storages", [])
        fields = [set(each) for each in given]
        return [f"extras.storages: {each}" for each in fields if each - {"name", "mountPath"}]

    def judge_answer(self, asked: Asked, reply: Reply) -> list[str]:
        """See :class:`PlayedService`."""
        if asked.path.startswith("/log-manager/"):
            return []
        document = reply.document
        if isinstance(document, list):  # the rest is made as these are
            document = document[:20]
        if reply.kind == "text/yaml":
            document = YAML(typ="safe", pure=True).load(document)
        return self.contract.answer(asked.method, asked.path, reply.status, reply.kind, document)

    def refusal(self, refusal: Refusal) -> Reply:
        """See :class:`PlayedService`."""
        code = {"code": refusal.code} if refusal.code else {}
        return Reply(refusal.status, {**code, "message": str(refusal) or "no"})

    # -- what is asked ---------------------------------------------------------------------------

    def perform(self, asked: Asked) -> Reply:
        """See :class:`PlayedService`."""
        if asked.path.startswith("/log-manager/"):
            name = asked.path.rpartition("/")[2]
            return Reply(200, self.job(name).output.read_text(errors="replace"), "text/plain")
        if asked.path == "/api/v2/jobs":
            return self._create(asked) if asked.method == "POST" else self._list(asked)
        match = _JOB.fullmatch(asked.path)
        if match is not None:
            return self._of_job(asked, match["user"], match["name"], match["rest"] or "")
        return Reply(200, self._of_cluster(asked.path))

    def _of_cluster(self, path: str) -> Any:
        kind, _, name = path.removeprefix("/api/v2/").partition("/")
        if kind == "info":
            about = {"version": "v1.8.0", "launcherType": "k8s", "authnMethod": "basic"}
            return {"name": "PAI RESTful API", **about}
        if kind == "virtual-clusters":
            return {name: _virtual_cluster(gpus) for name, gpus in self.virtual_clusters.items()}
        if kind == "users" and self.application:
            raise Refusal(403, "ForbiddenUserError", "Applications are not allowed to do this.")
        if kind == "users" and name == USER:
            lists = {"virtualCluster": self.allowed, "storageConfig": list(self.storages)}
            return {"username": USER, "email": "a@lab", "admin": False, "extension": {}, **lists}
        if kind == "users":
            raise Refusal(404, "NoUserError", f"User {name} is not found.")
        if not name:
            return {"storages": [_storage(each, self.storages) for each in self.storages]}
        if name not in self.storages:
            raise Refusal(404, "NoStorageError", f"Storage {name} is not found.")
        data = {"type": "nfs", "data": {"server": "10.0.0.1", "path": "/data"}}
        about = _storage(name, self.storages)
        del about["default"]  # its example has it, and its schema has not
        return {**about, **data, "readOnly": name in self.read_only}

    def _create(self, asked: Asked) -> Reply:
        document = asked.document
        name, wanted = document["name"], document.get("defaults", {}).get("virtualCluster")
        if self.ids(name):
            raise Refusal(409, "ConflictJobError", f"Job name {name} already exists.")
        if (wanted or "default") not in self.virtual_clusters:
            text = f"Virtual cluster {wanted} is not found."
            raise Refusal(400, "NoVirtualClusterError", text)
        if wanted is not None and wanted not in self.allowed:
            text = f"User {USER} is not allowed to do operation in {wanted}."
            raise Refusal(403, "ForbiddenUserError", text)
        if self.over_quota:
            raise Refusal(403, "NoEnoughQuotaError", f"User {USER} has no quota left.")
        (role,) = document["taskRoles"].values()
        script = self.folder / f"{name}.user.sh"
        script.touch(0o600)
        script.write_text("\n".join(_rendered(each, document) for each in role["commands"]))
        nodes = range(role.get("instances", 1))
        rank = "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"
        job = PlayedJob(
            name,
            [["bash", str(script)] for _ in nodes],
            [{rank: str(number)} for number in nodes],
            document,
        )
        self.machines.add(f"{USER}~{name}", job)
        return Reply(202, {"message": f"update job {name} successfully"})

    def _list(self, asked: Asked) -> Reply:
        query = asked.query
        start = int(query.get("offset", 0))
        end = start + min(int(query.get("limit", 5000)), 50000)
        keyword = query.get("keyword", "")
        found = [
            (job.created, self._summary(job))
            for job in self.machines.jobs.values()
            if keyword in job.name and job.name not in self.hidden
        ]
        if query.get("order", "submissionTime,DESC") == "submissionTime,DESC":
            found.sort(key=lambda each: -each[0])
        if query.get("username", USER) != USER:
            found = []
        return Reply(200, [row for _, row in found[start:end]])

    def _of_job(self, asked: Asked, user: str, name: str, rest: str) -> Reply:
        job = self.machines.jobs.get(f"{user}~{name}")
        if job is None:
            raise Refusal(404, "NoJobError", f"Job {name} is not found.")
        if rest == "/config":
            shown = {**job.document, "secrets": dict.fromkeys(job.document["secrets"], "******")}
            return Reply(200, _yaml(shown), "text/yaml")
        if rest == "/events":
            usual = NO_ROOM if job.waits else ""
            text = self.warnings.get(name, usual)
            events = [_event(job, text)] if text else []
            return Reply(200, {"totalCount": len(events), "data": events})
        if rest == "/executionType":
            self.machines.stop(f"{user}~{name}", grace_s=5.0)
            return Reply(202, {"message": f"execute job {name} successfully"})
        if rest.endswith("/logs"):
            if job.started is None:
                raise Refusal(404, "NoTaskLogError", "Log of task is not found.")
            uri = f"{self.below}/log-manager/n1:9103/{name}"
            return Reply(200, {"locations": [{"name": "user.pai.all", "uri": uri}]})
        return Reply(200, self._detail(job))

    # -- what jobs look like ---------------------------------------------------------------------

    def _summary(self, job: PlayedJob) -> dict[str, Any]:
        return {
            "name": job.name,
            "username": USER,
            "virtualCluster": "default",
            "state": job.word or _state(job),
            "subState": "Completed" if job.ended is not None else "AttemptRunning",
            "executionType": "STOP" if job.cause == STOPPED else "START",
            "retries": job.retries,
            "submissionTime": _ms(job.created) or 0,
            "createdTime": _ms(job.created),
            "launchedTime": _ms(job.started),
            "completedTime": _ms(job.ended),
            "appExitCode": job.code,
        }

    def _detail(self, job: PlayedJob) -> dict[str, Any]:
        status = {key: value for key, value in self._summary(job).items() if key != "name"}
        status |= {f"app{key[0].upper()}{key[1:]}": status[key]
                   for key in ("createdTime", "launchedTime", "completedTime")}  # fmt: skip
        status["appExitDiagnostics"] = status["appExitTriggerMessage"] = None
        status["appExitSpec"] = status["appExitMessages"] = None
        if job.ended is not None and (job.code or job.cause):
            phrases = {PREEMPTED: "PodPreempted", OUT_OF_MEMORY: "ContainerOOMKilled"}
            phrase = phrases.get(job.cause, "ContainerFailed")
            status["appExitSpec"] = {"code": job.code or -1, "phrase": phrase}
            status["appExitDiagnostics"] = job.output.read_text(errors="replace")[-300:]
        tasks = [{"taskIndex": n, "taskState": _state(job)} for n in range(len(job.argvs))]
        role = {"taskRoleStatus": {"name": "agent"}, "taskStatuses": tasks}
        return {"name": job.name, "jobStatus": status, "taskRoles": {"agent": role}}

    # -- for tests -------------------------------------------------------------------------------

    def foreign(self, name: str) -> None:
        """See :class:`PlayedService`."""
        document = {**_whole(name), "description": "somebody else's"}
        job = PlayedJob(name, [["sleep", "1000"]], [{}], document)
        self.machines.add(f"{USER}~{name}", job)

    def fill(self, label: str, many: int) -> None:
        """See :class:`PlayedService`."""
        for number in range(many):
            name = f"{label}-worker-{number}"
            job = PlayedJob(name, [["sleep", "1000"]], [{}], _whole(name))
            self.machines.add(f"{USER}~{name}", job)

    def shown(self, name: str) -> str:
        """See :class:`PlayedService`."""
        job = self.job(name)
        config = {**job.document, "secrets": None}
        return str([config, self._detail(job), self._summary(job), job.variables])

    def renew(self, token: str) -> None:
        """See :class:`PlayedService`."""
        self.token_file.write_text(f"{token}\n")


def _rendered(command: str, document: Mapping[str, Any]) -> str:
    """A command with its templates replaced, as containers have it."""

    def value(tag: re.Match[str]) -> str:
        secret = _SECRET.fullmatch(tag[1])
        if tag[2] != "%>" or secret is None or secret[1] not in document["secrets"]:
            raise Refusal(400, "InvalidParametersError", f"the template {tag[0][:40]!r} is none")
        return str(document["secrets"][secret[1]])

    return _TAGS.sub(value, command)


def _state(job: PlayedJob) -> str:
    if job.waits:
        return "WAITING"
    if job.runs:
        return "STOPPING" if job.dies_at is not None else "RUNNING"
    if job.cause == STOPPED:
        return "STOPPED"
    return "FAILED" if job.code or job.cause else "SUCCEEDED"


def _ms(moment: float | None) -> int | None:
    return None if moment is None else int(moment * 1000)


def _virtual_cluster(gpus: int) -> dict[str, Any]:
    total = {"cpu": 64, "memory": 256 << 10, "gpu": gpus}
    resources = {f"resources{kind}": total for kind in ("Total", "Guaranteed")}
    used = {"resourcesUsed": dict.fromkeys(total, 0), "usedCapacity": 0}
    return {"capacity": 100, "maxCapacity": 100, "dedicated": False, **resources, **used}


def _storage(name: str, storages: Mapping[str, bool]) -> dict[str, Any]:
    return {"name": name, "share": storages[name], "volumeName": f"pv-{name}", "default": True}


def _event(job: PlayedJob, text: str) -> dict[str, Any]:
    reason, _, message = text.partition(": ")
    return {
        "uid": "u1", "frameworkName": "f1", "podUid": "p1", "taskroleName": "agent",
        "taskName": f"{job.name}-agent-0", "taskIndex": 0, "type": "Warning", "reason": reason,
        "message": message, "firstTimestamp": "2026-01-01T00:00:00.000Z",
        "lastTimestamp": "2026-01-01T00:00:00.000Z", "count": 1,
        "sourceComponent": "default-scheduler", "sourceHost": None,
    }  # fmt: skip


def _whole(name: str) -> dict[str, Any]:
    """The protocol of a job that is valid, and says nothing."""
    role = {"dockerImage": "i", "resourcePerInstance": {"cpu": 1}, "commands": ["true"]}
    return {
        "protocolVersion": 2, "name": name, "type": "job", "taskRoles": {"agent": role},
        "prerequisites": [{"name": "i", "type": "dockerimage", "uri": "i"}], "secrets": {},
    }  # fmt: skip


def _yaml(document: Any) -> str:
    out = io.StringIO()
    YAML(typ="safe", pure=True).dump(document, out)
    return out.getvalue()


class PlayedOpenPai:
    """See :class:`~tests.support.services.played.PlayedPlatform`."""

    @contextlib.contextmanager
    def serving(self, folder: Path, places: int) -> Iterator[OpenPai]:
        """See :class:`PlayedPlatform`."""
        (folder / "service").mkdir(exist_ok=True)
        with serving(OpenPai(folder / "service", places)) as service:
            yield service

    def section(self, service: PlayedService, folder: Path) -> dict[str, Any]:
        """See :class:`PlayedPlatform`."""
        assert isinstance(service, OpenPai)
        return {
            "platform": "openpai",
            "address": service.address,
            "user": USER,
            "token": f"file:{service.token_file}",
            "image": "our/own:1",
            "cpus": 1,
            "memory": "1GB",
        }


OPENPAI = PlayedOpenPai()
