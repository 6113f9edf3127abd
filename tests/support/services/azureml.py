"""A workspace of Azure Machine Learning of ours: Azure Resource Manager, the run history and the
storage that has logs, all at one address, judged by their contracts in both roles."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.support.services.arm import ArmContract
from tests.support.services.contract import GATEWAY, OpenApi
from tests.support.services.machines import OUT_OF_MEMORY, PREEMPTED, STOPPED, WALL_TIME, PlayedJob
from tests.support.services.server import TOKEN, Asked, PlayedService, Refusal, Reply, serving

CONTRACTS = Path(__file__).parents[2] / "contracts/azureml"
SUBSCRIPTION, GROUP, WORKSPACE = "00000000-1111-2222-3333-444444444444", "lab", "nas-lab"
COMPUTE, ENVIRONMENT, SIGNATURE = "gpu-cluster", "azureml:nas:7", "s1gned-address"

#: The id of the workspace.
ID = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/"
    f"Microsoft.MachineLearningServices/workspaces/{WORKSPACE}"
)

#: Jobs on a page.
PAGE = 100

#: What may be changed of a job that is there.
MUTABLE = ("description", "tags", "displayName", "properties", "isArchived")

BODIES = {
    "jobs.create_or_update": "JobBase",
    "environment_versions.create_or_update": "EnvironmentVersion",
}
ANSWERS: dict[str, tuple[str, tuple[int, ...]]] = {
    "jobs.create_or_update": ("JobBase", (200, 201)),
    "jobs.get": ("JobBase", (200,)),
    "jobs.list": ("JobBaseResourceArmPaginatedResult", (200,)),
    "jobs.cancel": ("", (200, 202)),
    "jobs.delete": ("", (200, 202, 204)),
    "environment_versions.get": ("EnvironmentVersion", (200,)),
    "environment_versions.create_or_update": ("EnvironmentVersion", (200, 201)),
    "compute.get": ("ComputeResource", (200,)),
    "datastores.get": ("Datastore", (200,)),
    "workspaces.get": ("Workspace", (200,)),
}

_PLACES = re.compile(r"\$\{\{(.*?)\}\}")
_CODES = {401: "ExpiredAuthenticationToken", 403: "AuthorizationFailed", 404: "UserError"}


@functools.cache
def arm() -> ArmContract:
    """The contract of Azure Resource Manager."""
    schemas = [CONTRACTS / "jobs.schema.json", CONTRACTS / "workspaces.schema.json"]
    return ArmContract(schemas, CONTRACTS / "operations.json", "2023-04-01", BODIES, ANSWERS)


@functools.cache
def history() -> OpenApi:
    """The contract of the run history, which does not say what it answers for one that is not
    there."""
    return OpenApi(CONTRACTS / "runhistory.openapi.yaml", gateway=GATEWAY | {404})


class AzureMl(PlayedService):
    """The workspace.

    Attributes:
        compute: the properties of its compute.
        datastores: their kinds, by name; jobs get a folder of this machine for each.
        environments: properties, by ``NAME:VERSION``.
        warnings: of runs, by name.
        silent: whether runs that have failed have no message.
        used: names of jobs, which stay taken for good.
    """

    tells_restarts = False
    waiting_word, running_word = "Queued", "Running"

    def __init__(self, folder: Path, places: int = 4) -> None:
        self.folder = folder
        nodes = {"vmSize": "STANDARD_NC6", "vmPriority": "Dedicated", "osType": "Linux"}
        scale = {"maxNodeCount": 64, "minNodeCount": 0}
        self.compute: dict[str, Any] = {**nodes, "scaleSettings": scale}
        self.datastores = {"workspacefilestore": "AzureFile", "workspaceblobstore": "AzureBlob"}
        self.environments: dict[str, dict[str, Any]] = {"nas:7": {"image": "our/own:1"}}
        self.warnings: dict[str, list[str]] = {}
        self.silent = False
        self.used: set[str] = set()
        self.token_file = folder / "token"
        self.token_file.write_text(f"{TOKEN}\n")
        super().__init__(folder, places)

    # -- the judge -------------------------------------------------------------------------------

    def judge_request(self, asked: Asked) -> list[str]:
        """See :class:`PlayedService`."""
        if asked.path.startswith("/blob/"):
            has_token = "authorization" in asked.headers
            return ["a token goes to a storage that is not asked for one"] if has_token else []
        if asked.path.startswith("/history/"):
            return history().request(
                asked.method, asked.path, asked.query, asked.kind, asked.document
            )
        return arm().request(asked.method, asked.path, asked.query, asked.document)

    def judge_answer(self, asked: Asked, reply: Reply) -> list[str]:
        """See :class:`PlayedService`."""
        document = reply.document
        if asked.path.startswith("/blob/"):
            return []
        if asked.path.startswith("/history/"):
            return history().answer(asked.method, asked.path, reply.status, reply.kind, document)
        if isinstance(document, dict) and "value" in document:  # the rest is made as these are
            document = {**document, "value": document["value"][:20]}
        return arm().answer(asked.method, asked.path, reply.status, document)

    def refusal(self, refusal: Refusal) -> Reply:
        """See :class:`PlayedService`."""
        code = refusal.code or _CODES.get(refusal.status, "ServiceError")
        return Reply(refusal.status, {"error": {"code": code, "message": str(refusal) or "no"}})

    def authenticate(self, asked: Asked) -> None:
        """See :class:`PlayedService`. What has a signature needs no token."""
        if asked.path.startswith("/blob/"):
            if asked.query.get("sig") != SIGNATURE:
                raise Refusal(403, "AuthenticationFailed", "Signature did not match.")
            return
        if asked.headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            text = "The access token has expired or is not yet valid."
            raise Refusal(401, "ExpiredAuthenticationToken", text)

    # -- what is asked ---------------------------------------------------------------------------

    def perform(self, asked: Asked) -> Reply:
        """See :class:`PlayedService`."""
        if asked.path.startswith("/blob/"):
            name = asked.path.split("/")[2]
            return Reply(200, self.job(name).output.read_text(errors="replace"), "text/plain")
        path = asked.path.removeprefix("/history/v1.0")
        if not path.startswith(ID):
            text = f"The Resource '{path.partition('/jobs')[0]}' was not found."
            raise Refusal(404, "ResourceNotFound", text)
        kind, _, name = path.removeprefix(ID).lstrip("/").partition("/")
        if not kind:
            about = {"discoveryUrl": f"{self.address}/discovery", "provisioningState": "Succeeded"}
            return Reply(200, self._resource("", WORKSPACE, about))
        if kind == "jobs" and not name:
            return Reply(200, self._page(asked.query))
        if kind == "jobs" and asked.method == "PUT":
            return self._create(name, asked.document["properties"])
        if kind == "environments":
            return self._environment(asked, name.replace("/versions/", ":"))
        if kind == "computes":
            return Reply(200, self._resource(path, name, self._compute(name)))
        if kind == "datastores":
            return Reply(200, self._resource(path, name, self._store(name)))
        name, _, verb = name.partition("/")
        job = self.machines.jobs.get(name)
        if job is None:
            raise Refusal(404, "UserError", f"Job {name} not found.")
        if kind == "runs":
            return Reply(200, self.details(job))
        if verb == "cancel":
            if job.ended is not None:
                raise Refusal(400, "UserError", "The job has ended, and cannot be canceled.")
            self.machines.stop(name, grace_s=5.0)
            return Reply(202, headers={"Location": f"{self.address}{path}"})
        if asked.method == "DELETE":
            self.machines.remove(name)
            return Reply(202, headers={"Location": f"{self.address}{path}"})
        return Reply(200, self.shape(job))

    def _create(self, name: str, own: dict[str, Any]) -> Reply:
        there = self.machines.jobs.get(name)
        if there is not None or name in self.used:
            fixed = {key: value for key, value in own.items() if key not in MUTABLE}
            if there is None or {**there.document, **fixed} != there.document:
                text = "A job with this name already exists, and cannot be changed."
                raise Refusal(400, "UserError", text)
            there.document["tags"] = {**there.document.get("tags", {}), **own.get("tags", {})}
            return Reply(200, self.shape(there))
        if not re.fullmatch(r"[A-Za-z0-9][\w-]{0,254}", name):
            raise Refusal(400, "UserError", f"{name} is no name of a job.")
        self._compute(own["computeId"].removeprefix(f"{ID}/computes/"))
        self._known_environment(own["environmentId"])
        command = _PLACES.sub(functools.partial(self._mounted, own), own["command"])
        nodes = own["resources"]["instanceCount"]
        if nodes > 1 and own.get("distribution", {}).get("distributionType") != "PyTorch":
            raise Refusal(400, "UserError", "Several nodes need a distribution.")
        limit = re.fullmatch(r"PT(\d+)S", own.get("limits", {}).get("timeout", ""))
        job = PlayedJob(
            name,
            [["bash", "-c", command] for _ in range(nodes)],
            [{"NODE_RANK": str(rank)} if nodes > 1 else {} for rank in range(nodes)],
            own,
            None if limit is None else float(limit[1]),
        )
        self.used.add(name)
        self.machines.add(name, job)
        return Reply(201, self.shape(job))

    def _mounted(self, own: Mapping[str, Any], place: re.Match[str]) -> str:
        """The folder of this machine that stands for an output of a job."""
        output = own.get("outputs", {}).get(place[1].strip().removeprefix("outputs."), {})
        shape = re.fullmatch(r"azureml://datastores/(\w+)/paths/([\w./-]*)", output.get("uri", ""))
        if shape is None or output.get("mode") != "ReadWriteMount":
            raise Refusal(400, "UserError", f"{place[0]} is nothing that a job has.")
        self._store(shape[1])
        folder = self.store(shape[1]) / shape[2]
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    def _known_environment(self, id_: str) -> None:
        name = id_.removeprefix(f"{ID}/environments/").replace("/versions/", ":")
        if not id_.startswith("azureml://registries/") and name not in self.environments:
            raise Refusal(400, "EnvironmentNotFound", f"The environment {name} was not found.")

    def _environment(self, asked: Asked, name: str) -> Reply:
        status = 200
        if asked.method == "PUT":
            status, own = 201, asked.document["properties"]
            if self.environments.get(name, own) != own:
                raise Refusal(409, "UserError", f"The environment {name} exists.")
            self.environments[name] = own
        if name not in self.environments:
            raise Refusal(404, "UserError", f"The environment {name} was not found.")
        return Reply(status, self._resource(asked.path, name, self.environments[name]))

    def _compute(self, name: str) -> dict[str, Any]:
        if name != COMPUTE:
            raise Refusal(404, "ComputeNotFound", f"There is no compute with name {name}.")
        about = {**self.compute, "currentNodeCount": len(self.machines.running())}
        return {"computeType": "AmlCompute", "provisioningState": "Succeeded", "properties": about}

    def _store(self, name: str) -> dict[str, Any]:
        if name not in self.datastores:
            raise Refusal(404, "UserError", f"Could not find a datastore with name {name}.")
        kind = self.datastores[name]
        own = {"fileShareName": "share"} if kind == "AzureFile" else {"containerName": "blobs"}
        credentials = {"credentialsType": "None"}
        return {"datastoreType": kind, "credentials": credentials, "accountName": "lab", **own}

    def _page(self, query: Mapping[str, str]) -> dict[str, Any]:
        tag, start = query.get("tag"), int(query.get("$skip", 0))
        jobs = [
            job
            for job in reversed(self.machines.jobs.values())
            if (tag is None or tag in job.document.get("tags", {})) and job.name not in self.hidden
        ]
        page: dict[str, Any] = {"value": [self.shape(each) for each in jobs[start : start + PAGE]]}
        if start + PAGE < len(jobs):
            following = urlencode({**query, "$skip": start + PAGE})
            page["nextLink"] = f"{self.address}{ID}/jobs?{following}"
        return page

    # -- what is shown ---------------------------------------------------------------------------

    def _resource(self, path: str, name: str, about: dict[str, Any]) -> dict[str, Any]:
        kind = "Microsoft.MachineLearningServices/workspaces"
        return {"id": path or ID, "name": name, "type": kind, "properties": about}

    def shape(self, job: PlayedJob) -> dict[str, Any]:
        """A job as it is answered."""
        endpoint = self.address.replace("http:", "azureml:")
        about = {
            **job.document,
            "status": job.word or _word(job),
            "isArchived": False,
            "parameters": {},
            "services": {"Tracking": {"jobServiceType": "Tracking", "endpoint": endpoint}},
        }
        made = self._resource(f"{ID}/jobs/{job.name}", job.name, about)
        return {**made, "systemData": {"createdAt": _moment(job.created), "createdBy": "alice"}}

    def details(self, job: PlayedJob) -> dict[str, Any]:
        """The run of a job as the history answers it."""
        texts = self.warnings.get(job.name, [])
        run: dict[str, Any] = {
            "runId": job.name,
            "target": COMPUTE,
            "status": job.word or _word(job),
            "warnings": [{"source": "service", "message": each} for each in texts],
        }
        if job.started is not None:
            run["startTimeUtc"] = _moment(job.started)
            url = f"{self.address}/blob/{job.name}/std_log.txt?sig={SIGNATURE}"
            run["logFiles"] = {
                "system_logs/lifecycler/execution-wrapper.log": "http://127.0.0.1:1/none",
                "user_logs/std_log.txt": url,
            }
        if job.ended is not None:
            run["endTimeUtc"] = _moment(job.ended)
        if run["status"] == "Failed":
            run["error"] = {"error": _error(job, is_silent=self.silent)}
        return run

    # -- for tests -------------------------------------------------------------------------------

    def store(self, name: str) -> Path:
        """The folder of this machine that stands for a datastore."""
        return self.folder / "stores" / name

    def foreign(self, name: str) -> None:
        """See :class:`PlayedService`."""
        self.machines.add(name, PlayedJob(name, [["sleep", "1000"]], [{}], whole({})))

    def fill(self, label: str, many: int) -> None:
        """See :class:`PlayedService`."""
        for number in range(many):
            name = f"{label}-worker-{number}"
            job = PlayedJob(name, [["sleep", "1000"]], [{}], whole({f"bequeath-{label}": "x"}))
            self.machines.add(name, job)

    def shown(self, name: str) -> str:
        """See :class:`PlayedService`."""
        job = self.job(name)
        return str([self.shape(job), self.details(job), job.variables])

    def renew(self, token: str) -> None:
        """See :class:`PlayedService`."""
        self.token_file.write_text(f"{token}\n")


def whole(tags: Mapping[str, str]) -> dict[str, Any]:
    """The properties of a job that are valid, and say nothing."""
    ids = {"computeId": f"{ID}/computes/{COMPUTE}", "environmentId": f"{ID}/environments/nas/7"}
    return {"jobType": "Command", "command": "true", "tags": dict(tags), **ids}


def _word(job: PlayedJob) -> str:
    if job.waits:
        return "Queued"
    if job.runs:
        return "CancelRequested" if job.dies_at is not None else "Running"
    if job.cause in (STOPPED, WALL_TIME):
        return "Canceled"
    return "Failed" if job.code or job.cause else "Completed"


def _error(job: PlayedJob, *, is_silent: bool) -> dict[str, Any]:
    if job.cause == PREEMPTED:
        return {"code": "ServiceError", "message": "The node of the job was preempted."}
    if job.cause == OUT_OF_MEMORY:
        inner = {"code": "BadArgument", "innerError": {"code": "OutOfMemory"}}
        return {"code": "UserError", "message": "The container was killed.", "innerError": inner}
    text = f"User process 'bash' exited with status code {job.code}."
    return {"code": "UserError", **({} if is_silent else {"message": text})}


def _moment(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%S.%f}0+00:00"


class PlayedAzureMl:
    """See :class:`~tests.support.services.played.PlayedPlatform`."""

    @contextlib.contextmanager
    def serving(self, folder: Path, places: int) -> Iterator[AzureMl]:
        """See :class:`PlayedPlatform`."""
        (folder / "service").mkdir(exist_ok=True)
        with serving(AzureMl(folder / "service", places)) as service:
            yield service

    def section(self, service: PlayedService, folder: Path) -> dict[str, Any]:
        """See :class:`PlayedPlatform`."""
        assert isinstance(service, AzureMl)
        return {
            "platform": "azureml",
            "address": service.address,
            "subscriptionId": SUBSCRIPTION,
            "resourceGroup": GROUP,
            "workspace": WORKSPACE,
            "compute": COMPUTE,
            "image": ENVIRONMENT,
            "token": f"file:{service.token_file}",
        }


AZUREML = PlayedAzureMl()
