"""PAI-DLC of ours: it checks signatures, and is judged by its contract in both roles."""

from __future__ import annotations

import contextlib
import functools
import hmac
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from dispatcher.http_services.server_clock import moment_of
from tests.support.services.machines import (
    OUT_OF_MEMORY,
    PREEMPTED,
    STOPPED,
    WALL_TIME,
    PlayedJob,
)
from tests.support.services.server import TOKEN, Asked, PlayedService, Refusal, Reply, serving

CONTRACTS = Path(__file__).parents[2] / "contracts/pai-dlc"
VERSION, KEY_ID, WORKSPACE, REGION, QUOTA = "2020-12-03", "LTAI-tests", "268", "cn-tests", "quota7"
WEEK_S = 7 * 86400.0

#: The most jobs on a page.
MOST = 100

#: Machines, and the GPUs of each.
MACHINES = {"ecs.g6.2xlarge": 0, "ecs.gn6v-c8g1.2xlarge": 1}

#: The event of a job that finds no place.
NO_ROOM = "JobEnqueued: 8 cpu are asked for, and 0 of the quota are free"

_CODES = {
    400: "InvalidParameter", 401: "Unauthorized", 403: "NoPermission", 404: "EntityNotFound",
    429: "Throttling.User", 500: "InternalError", 502: "BadGateway", 503: "ServiceUnavailable",
    504: "GatewayTimeout",
}  # fmt: skip
_ERROR = {
    "type": "object",
    "properties": {key: {"type": "string"} for key in ("Code", "Message", "RequestId", "HostId")},
    "required": ["Code", "Message", "RequestId"],
    "additionalProperties": False,
}
_KINDS = {"Integer": r"-?\d+", "Long": r"-?\d+", "Boolean": "true|false", "String": ".*"}
_SIGNED = re.compile(
    r"ACS3-HMAC-SHA256 Credential=(?P<id>[^,]+),SignedHeaders=(?P<names>[a-z0-9;-]+),"
    r"Signature=(?P<signature>[0-9a-f]{64})"
)
_TYPES = {"PyTorchJob": {"Master", "Worker"}, "TFJob": {"Chief", "PS", "Worker", "Evaluator"}}


class Contract:
    """Operations and the schemas of their bodies.

    Attributes:
        operations: by name.
    """

    def __init__(self, folder: Path) -> None:
        self.operations = json.loads((folder / "operations.json").read_text("utf-8"))
        self._defs = json.loads((folder / "bodies.derived.schema.json").read_text("utf-8"))["$defs"]

    def operation(self, method: str, path: str) -> str:
        """The name of the operation that a request asks for; empty: there is none."""
        for name, each in self.operations.items():
            shape = re.sub(r"\[\w+\]", "[^/]+", each["pathPattern"].replace(".", r"\."))
            if each["method"] == method and re.fullmatch(shape, path):
                return str(name)
        return ""

    def request(self, name: str, query: Mapping[str, str], body: Any) -> list[str]:
        """What the contract has against a request.

        Args:
            name: of the operation.
            query: parameters.
            body: read; None: there is none.
        """
        given = self.operations[name]["parameters"]
        known = {each["name"]: each for each in given if each["position"] == "Query"}
        wrong = [f"{name}: there is no parameter {key!r}" for key in query if key not in known]
        for key, each in known.items():
            if each["required"] and key not in query:
                wrong.append(f"{name}: {key} is missing")
            if key in query and not re.fullmatch(_KINDS[each["type"]], query[key]):
                wrong.append(f"{name}: {key} is no {each['type']}")
        if not any(each["position"] == "Body" for each in given):
            return wrong if body is None else [*wrong, f"{name}: it takes no body"]
        return [*wrong, *self.complaints(f"{name}Request", body)]

    def complaints(self, name: str, value: Any) -> list[str]:
        """What a schema has against a value.

        Args:
            name: of the schema.
            value: of JSON.
        """
        whole = {"$ref": f"#/$defs/{name}", "$defs": self._defs}
        return _errors(Draft202012Validator(whole), value)


def _errors(validator: Any, value: Any) -> list[str]:
    return [
        f"{'.'.join(map(str, each.absolute_path)) or 'body'}: {each.message[:300]}"
        for each in validator.iter_errors(value)
    ]


@functools.cache
def contract() -> Contract:
    """The contract."""
    return Contract(CONTRACTS)


class Dlc(PlayedService):
    """The service. It chooses the ids of jobs itself, and refuses no name.

    Attributes:
        reasons: code and message of jobs, by name, in place of the usual ones.
        events: of a job, by name.
        preparing: names of jobs whose nodes are prepared.
        over_quota: whether nothing is left of the quota.
        sold_out: types of machines that are.
        reads_logs: whether the user may read them.
        bare_lists: whether lists have no settings, and so no tags.
        sts: the token that must come with the key; empty: none.
        keeps: whether machines of jobs that have ended are kept.
        ordered: jobs as they were asked for, and taken; records of them may be gone.
    """

    waiting_word = "Queuing"
    running_word = "Running"
    odd_word = "Levitating"

    def __init__(self, folder: Path, places: int = 4) -> None:
        self.contract = contract()
        self.reasons: dict[str, tuple[str, str]] = {}
        self.events: dict[str, list[str]] = {}
        self.preparing: set[str] = set()
        self.sold_out: set[str] = set()
        self.over_quota = self.bare_lists = self.keeps = False
        self.reads_logs = True
        self.sts = ""
        self.ordered: list[Any] = []
        self._nonces: set[str] = set()
        self._ids = itertools.count(1)
        self.id_file, self.secret_file = folder / "id", folder / "token"
        self.id_file.write_text(f"{KEY_ID}\n")
        self.secret_file.write_text(f"{TOKEN}\n")
        super().__init__(folder, places)

    # -- who asks --------------------------------------------------------------------------------

    def authenticate(self, asked: Asked) -> None:
        """See :class:`PlayedService`: by the signature over the request."""
        headers = asked.headers
        signed = _SIGNED.fullmatch(headers.get("authorization", ""))
        if signed is None:
            raise Refusal(400, "IncompleteSignature", "The request signature is incomplete.")
        if signed["id"] != KEY_ID:
            raise Refusal(404, "InvalidAccessKeyId.NotFound", "Specified access key is not found.")
        names = signed["names"].split(";")
        ours = {name for name in headers if name.startswith("x-acs-")}
        needed = ours | {"host", "x-acs-action", "x-acs-version", "x-acs-date"}
        needed |= {"content-type"} & set(headers)
        if names != sorted(set(names)) or not needed <= set(names):
            raise Refusal(400, "IncompleteSignature", "Headers are not signed.")
        moment = moment_of(headers["x-acs-date"]) or 0.0
        if abs(moment - self.now()) > 900.0:
            text = "Specified time stamp or date value is expired."
            raise Refusal(400, "InvalidTimeStamp.Expired", text)
        self._demand_new(headers["x-acs-signature-nonce"])
        if self.sts and headers.get("x-acs-security-token") != self.sts:
            text = "Specified SecurityToken is expired."
            raise Refusal(403, "InvalidSecurityToken.Expired", text)
        digest = sha256(self._canonical(asked, names).encode()).hexdigest()
        text = f"ACS3-HMAC-SHA256\n{digest}"
        valid = {hmac.new(x.encode(), text.encode(), sha256).hexdigest() for x in self.tokens}
        if signed["signature"] not in valid:
            why = f"Specified signature does not match our calculation, which is over {text}"
            raise Refusal(400, "SignatureDoesNotMatch", f"{why}, and yours: {signed[0]}")

    def _demand_new(self, nonce: str) -> None:
        with self.lock:
            if nonce in self._nonces:
                raise Refusal(400, "SignatureNonceUsed", "The signature nonce was used already.")
            self._nonces.add(nonce)

    def _canonical(self, asked: Asked, names: list[str]) -> str:
        """The text that a signature is over, of what has come."""
        digest = sha256(asked.content).hexdigest()
        if asked.headers["x-acs-content-sha256"] != digest:
            raise Refusal(400, "SignatureDoesNotMatch", "The body has another digest.")
        pairs = sorted((quote(k, "~"), quote(v, "~")) for k, v in asked.query.items())
        query = "&".join(f"{key}={value}" for key, value in pairs)
        headers = "".join(f"{name}:{asked.headers[name].strip()}\n" for name in names)
        path = quote(asked.path, "/~")
        return "\n".join([asked.method, path, query, headers, ";".join(names), digest])

    # -- the judge -------------------------------------------------------------------------------

    def judge_request(self, asked: Asked) -> list[str]:
        """See :class:`PlayedService`."""
        name = self.contract.operation(asked.method, asked.path)
        if not name:
            return [f"{asked.method} {asked.path}: there is no such operation"]
        wrong = self.contract.request(name, asked.query, asked.document)
        given = (asked.headers["x-acs-action"], asked.headers["x-acs-version"])
        if given != (name, VERSION):
            wrong.append(f"{name}: its headers name {given}")
        return wrong or (rules(asked.document, len(asked.content)) if name == "CreateJob" else [])

    def judge_answer(self, asked: Asked, reply: Reply) -> list[str]:
        """See :class:`PlayedService`."""
        name, document = self.contract.operation(asked.method, asked.path), reply.document
        if reply.status >= 400:
            return _errors(Draft202012Validator(_ERROR), document)
        if name == "ListJobs":  # the rest is made as these are
            document = {**document, "Jobs": document["Jobs"][:20]}
        return self.contract.complaints(f"{name}ResponseBody", document)

    def refusal(self, refusal: Refusal) -> Reply:
        """See :class:`PlayedService`."""
        known = refusal.code not in ("", "InvalidParametersError")
        code = refusal.code if known else _CODES[refusal.status]
        about = {"Code": code, "Message": str(refusal) or "no", "RequestId": "1-2-3"}
        return Reply(refusal.status, about)

    # -- what is asked ---------------------------------------------------------------------------

    def perform(self, asked: Asked) -> Reply:
        """See :class:`PlayedService`."""
        name = self.contract.operation(asked.method, asked.path)
        about = {"RequestId": "1-2-3"}
        if name == "CreateJob":
            return Reply(200, {"JobId": self._create(asked.document), **about})
        if name == "ListJobs":
            return Reply(200, {**self._list(asked.query), **about})
        if name == "ListEcsSpecs":
            return Reply(200, {**self._machines(asked.query), **about})
        id_, *rest = asked.path.removeprefix("/api/v1/jobs/").split("/")
        job = self.machines.jobs.get(id_)
        if job is None:
            raise Refusal(404, "JobNotFound", f"Job {id_} does not exist.")
        about["JobId"] = id_
        if name == "StopJob":
            self._stop(id_, job)
        elif name == "DeleteJob":
            if job.ended is None:
                raise Refusal(400, "InvalidJobStatus", "The job has not ended.")
            self.machines.remove(id_)
        elif name == "GetJob":
            return Reply(200, {**self._detail(id_, job), **about})
        else:
            return Reply(200, {**self._of_pods(name, id_, job, rest, asked.query), **about})
        return Reply(200, about)

    def _create(self, document: Mapping[str, Any]) -> str:
        self._demand_workspace(document.get("WorkspaceId", ""))
        if self.over_quota:
            text = "The resources that are left of the quota are not enough."
            raise Refusal(403, "QuotaExceeded", text)
        if document.get("ResourceId", QUOTA) != QUOTA:
            raise Refusal(404, "ResourceNotFound", f"Quota {document['ResourceId']} is not there.")
        for spec in document["JobSpecs"]:
            if spec.get("EcsSpec", "ecs.g6.2xlarge") not in MACHINES:
                raise Refusal(400, "InvalidParameter", f"EcsSpec {spec['EcsSpec']} is invalid.")
            if "nowhere" in spec["Image"]:
                raise Refusal(400, "InvalidParameter", f"Image {spec['Image']} is not accessible.")
        nodes = range(sum(each["PodCount"] for each in document["JobSpecs"]))
        variables = [{"RANK": str(each), "WORLD_SIZE": str(len(nodes))} for each in nodes]
        minutes = document.get("JobMaxRunningTimeMinutes")
        job = PlayedJob(
            document["DisplayName"],
            [["bash", "-c", document["UserCommand"]] for _ in nodes],
            variables,
            document,
            None if minutes is None else 60.0 * minutes,
        )
        self.ordered.append(document)
        return self._take(job)

    def _take(self, job: PlayedJob) -> str:
        id_ = f"dlc{next(self._ids):013x}"
        self.machines.add(id_, job)
        return id_

    def _demand_workspace(self, workspace: str) -> None:
        if workspace != WORKSPACE:
            text = f"You are no member of the workspace {workspace!r}."
            raise Refusal(403, "Forbidden.Workspace", text)

    def _list(self, query: Mapping[str, str]) -> dict[str, Any]:
        self._demand_workspace(query.get("WorkspaceId", ""))
        since = moment_of(query["StartTime"]) if "StartTime" in query else self.now() - WEEK_S
        text = query.get("DisplayName", "").lower()
        shown = [
            (job.created, self._summary(id_, job))
            for id_, job in self.machines.jobs.items()
            if text in job.name.lower() and job.name not in self.hidden and job.created >= since
        ]
        shown.sort(key=lambda each: each[0], reverse=query.get("Order", "desc") == "desc")
        size = min(int(query.get("PageSize", 10)), MOST)
        start = (max(1, int(query.get("PageNumber", 1))) - 1) * size
        rows = [row for _, row in shown[start : start + size]]
        return {"Jobs": rows, "TotalCount": len(shown)}

    def _machines(self, query: Mapping[str, str]) -> dict[str, Any]:
        wanted = query.get("InstanceTypes", ",".join(MACHINES)).split(",")
        rows = [
            {"InstanceType": name, "Gpu": gpus, "Cpu": 8, "IsAvailable": name not in self.sold_out}
            for name, gpus in MACHINES.items()
            if name in wanted
        ]
        return {"EcsSpecs": rows, "TotalCount": len(rows)}

    def _stop(self, id_: str, job: PlayedJob) -> None:
        if job.ended is not None and not self.keeps:
            raise Refusal(400, "InvalidJobStatus", "The job has ended already.")
        grace_s = job.document.get("Settings", {}).get("TerminationGracePeriodSeconds", 30)
        self.machines.stop(id_, grace_s=min(grace_s, 5.0))

    def _of_pods(
        self, name: str, id_: str, job: PlayedJob, rest: list[str], query: Mapping[str, str]
    ) -> dict[str, Any]:
        if name == "GetJobEvents":
            usual = [NO_ROOM] if job.waits else []
            most = int(query.get("MaxEventsNum", 2000))
            return {"Events": self.events.get(job.name, usual)[-most:]}
        pod = rest[1]
        if pod not in [each["PodId"] for each in self._pods(id_, job)]:
            raise Refusal(404, "PodNotFound", f"Pod {pod} does not exist.")
        if name == "GetPodEvents":
            return {"PodId": pod, "Events": self.events.get(pod, [])}
        if not self.reads_logs:
            raise Refusal(403, "NoPermission", "You may not read logs.")
        text = job.output.read_text(errors="replace") if job.output.exists() else ""
        return {"PodId": pod, "Logs": text.splitlines()[-int(query.get("MaxLines", 2000)) :]}

    # -- what jobs look like ---------------------------------------------------------------------

    def _summary(self, id_: str, job: PlayedJob) -> dict[str, Any]:
        document = job.document
        code, message = self.reasons.get(job.name) or _reason(job)
        state = job.word or self._state(job)
        settings = {} if self.bare_lists else {"Settings": document.get("Settings", {})}
        ends = {"Stopped": "GmtStoppedTime", "Succeeded": "GmtSuccessedTime"}
        times = {
            "GmtCreateTime": job.created,
            "GmtRunningTime": job.started,
            ends.get(state, "GmtFinishTime"): job.ended,
        }
        return {
            "JobId": id_,
            "DisplayName": job.name,
            "JobType": document["JobType"],
            "Status": state,
            "WorkspaceId": WORKSPACE,
            "UserCommand": document["UserCommand"],
            "JobSpecs": document["JobSpecs"],
            "ReasonCode": code,
            "ReasonMessage": message,
            "RestartTimes": f"{job.retries}/3" if job.retries else "",
            **settings,
            **{key: _moment(value) for key, value in times.items() if value is not None},
        }

    def _detail(self, id_: str, job: PlayedJob) -> dict[str, Any]:
        detail = {**self._summary(id_, job), "Settings": job.document.get("Settings", {})}
        return {**detail, "Pods": self._pods(id_, job), "Envs": job.document.get("Envs", {})}

    def _pods(self, id_: str, job: PlayedJob) -> list[dict[str, Any]]:
        if job.started is None and job.name not in self.preparing:
            return []
        kinds = [each["Type"] for each in job.document["JobSpecs"] for _ in range(each["PodCount"])]
        pods = [
            {"PodId": f"{id_}-{kind.lower()}-{number}", "Type": kind, "Status": "Running"}
            for number, kind in enumerate(kinds)
        ]
        return pods[::-1]

    def _state(self, job: PlayedJob) -> str:
        if job.waits:
            return "EnvPreparing" if job.name in self.preparing else "Queuing"
        if job.runs:
            return "Stopping" if job.dies_at is not None else "Running"
        if job.cause == STOPPED:
            return "Stopped"
        ended = "Failed" if job.code or job.cause else "Succeeded"
        return f"{ended}Reserving" if self.keeps else ended

    # -- for tests -------------------------------------------------------------------------------

    def foreign(self, name: str) -> None:
        """See :class:`PlayedService`."""
        self._wait(name)

    def fill(self, label: str, many: int) -> None:
        """See :class:`PlayedService`."""
        for number in range(many):
            self._wait(f"{label}-worker-{number}")

    def _wait(self, name: str) -> None:
        spec = {"Type": "Worker", "Image": "i", "PodCount": 1, "EcsSpec": "ecs.g6.2xlarge"}
        about = {"DisplayName": name, "JobType": "PyTorchJob", "UserCommand": "sleep 1000"}
        document = {**about, "JobSpecs": [spec]}
        self._take(PlayedJob(name, [["sleep", "1000"]], [{}], document))

    def shown(self, name: str) -> str:
        """See :class:`PlayedService`."""
        job = self.job(name)
        return str([job.document, self._detail(self.ids(name)[-1], job), job.variables])

    def renew(self, token: str) -> None:
        """See :class:`PlayedService`."""
        self.secret_file.write_text(f"{token}\n")


def rules(document: Mapping[str, Any], size: int) -> list[str]:
    """What remarks of the contract have against a job, which no schema says.

    Args:
        document: the job.
        size: of the request (bytes).
    """
    wrong = []
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,256}", document["DisplayName"]):
        wrong.append("DisplayName: 1 to 256 letters, digits, '_', '.' and '-'")
    if size > 65_536:
        wrong.append("body: is longer than 65,536 bytes")
    if document["JobType"] not in _TYPES:
        wrong.append(f"JobType: there is no {document['JobType']!r}")
    if document.get("Accessibility", "PRIVATE") not in ("PRIVATE", "PUBLIC"):
        wrong.append("Accessibility: PRIVATE or PUBLIC")
    if not 1 <= document.get("Priority", 1) <= 9:
        wrong.append("Priority: 1 to 9")
    kinds = _TYPES.get(document["JobType"], set())
    for number, spec in enumerate(document["JobSpecs"]):
        at = f"JobSpecs.{number}"
        if spec.get("Type") not in kinds:
            wrong.append(f"{at}.Type: one of {sorted(kinds)}")
        if not spec.get("Image") or spec.get("PodCount", 0) < 1:
            wrong.append(f"{at}: has an image, and a pod at least")
        if ("EcsSpec" in spec) == ("ResourceConfig" in spec):
            wrong.append(f"{at}: has an EcsSpec, or a ResourceConfig")
        if spec.get("RestartPolicy") != "Never":
            wrong.append(f"{at}.RestartPolicy: would start a job again")
    for number, source in enumerate(document.get("DataSources", [])):
        if ("DataSourceId" in source) == ("Uri" in source):
            wrong.append(f"DataSources.{number}: has an id, or an address")
        if not source.get("MountPath", "/").startswith("/"):
            wrong.append(f"DataSources.{number}.MountPath: from the root")
    return wrong


def _reason(job: PlayedJob) -> tuple[str, str]:
    """Why a job is in its state, as far as a list says it."""
    if job.ended is None:
        return ("", "")
    causes = {
        STOPPED: ("JobStoppedByUser", "Job is stopped by user."),
        PREEMPTED: ("JobPreempted", "The instance of the job was preempted."),
        OUT_OF_MEMORY: ("JobFailed", "The container was OOMKilled."),
        WALL_TIME: ("JobExceedMaxRunningTime", "The job has run for too long."),
    }
    code = job.code if job.code is None or job.code >= 0 else 128 - job.code
    failed = ("JobFailed", f"The container exited with code {code}.")
    usual = failed if job.code else ("JobSucceeded", "The job has succeeded.")
    return causes.get(job.cause, usual)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class PlayedDlc:
    """See :class:`~tests.support.services.played.PlayedPlatform`."""

    @contextlib.contextmanager
    def serving(self, folder: Path, places: int) -> Iterator[Dlc]:
        """See :class:`PlayedPlatform`."""
        (folder / "service").mkdir(exist_ok=True)
        with serving(Dlc(folder / "service", places)) as service:
            yield service

    def section(self, service: PlayedService, folder: Path) -> dict[str, Any]:
        """See :class:`PlayedPlatform`."""
        assert isinstance(service, Dlc)
        return {
            "platform": "dlc",
            "region": REGION,
            "workspaceId": WORKSPACE,
            "address": service.address,
            "accessKeyId": f"file:{service.id_file}",
            "accessKeySecret": f"file:{service.secret_file}",
            "image": "registry-vpc.cn-tests.aliyuncs.com/lab/nas:1",
            "ecsSpec": "ecs.g6.2xlarge",
        }


DLC = PlayedDlc()
