"""Google Cloud's services of ours: custom jobs of Vertex AI, jobs of AI Platform Training, and what
both need beside: Cloud Logging, Secret Manager, Cloud Storage, and the server by which a machine
knows who it is. All at one address, judged by their discovery documents in both roles."""

from __future__ import annotations

import contextlib
import json
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from dispatcher.platforms.google_cloud.jobs import ATTEMPT, MARK, SERVICE
from tests.support.services.discovery import Discovery
from tests.support.services.machines import (
    OUT_OF_MEMORY,
    PREEMPTED,
    STOPPED,
    WALL_TIME,
    PlayedJob,
)
from tests.support.services.server import TOKEN, Asked, PlayedService, Refusal, Reply, serving

CONTRACTS = Path(__file__).parents[2] / "contracts/google"
PROJECT, REGION = "lab-project-7", "us-central1"
JOB_TOKEN = "t0ken-of-a-job"
MACHINES = ("n1-standard-4", "n1-standard-8", "n1-highcpu-8")

#: The most jobs on a page.
MOST = 100

_WORDS = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    409: "ALREADY_EXISTS", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 502: "UNAVAILABLE",
    503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}  # fmt: skip
_CODES = {*_WORDS.values(), "FAILED_PRECONDITION"}
_RPC = "type.googleapis.com/google.rpc"
_LOGS = re.compile(
    r'resource\.type="ml_job" AND resource\.labels\.job_id="(?P<id>[^"]*)" '
    r'AND resource\.labels\.task_name(?P<sign>!?=)"service"'
)
_LABEL_KEY = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,64}")


class PlayedGoogle(PlayedService):
    """The services, with one of the two that run jobs.

    Attributes:
        secrets: of Secret Manager, by name: its versions, in base64.
        buckets: of Cloud Storage, by name: their objects.
        service_lines: what the service of jobs says of one, by id.
        quota: whether there is some left.
        reads_logs: whether the user may read them.
        reason: of the next refusals, as Google names causes.
    """

    tells_restarts = False
    main_task: ClassVar[str]
    contract_file: ClassVar[str]
    optional: ClassVar[tuple[str, ...]] = ()

    def __init__(self, folder: Path, places: int = 4) -> None:
        self.contracts = {
            name: Discovery(CONTRACTS / file, self.optional)
            for name, file in (
                ("jobs", self.contract_file),
                ("logging", "logging.v2.json"),
                ("secrets", "secretmanager.v1.json"),
                ("storage", "storage.v1.json"),
            )
        }
        self._status = Discovery(CONTRACTS / "aiplatform.v1.json")
        self.secrets: dict[str, list[str]] = {}
        self.buckets: dict[str, list[str]] = {"outputs": []}
        self.service_lines: dict[str, list[str]] = {}
        self.quota = self.reads_logs = True
        self.reason = ""
        self.token_file = folder / "token"
        self.token_file.write_text(f"{TOKEN}\n")
        super().__init__(folder, places)

    # -- for each of the two ---------------------------------------------------------------------

    @abstractmethod
    def create(self, asked: Asked) -> Any:
        """Take a job; returns it."""
        ...

    @abstractmethod
    def shape(self, id_: str, job: PlayedJob) -> dict[str, Any]:
        """A job as it is answered."""
        ...

    @abstractmethod
    def chosen(self, text: str, id_: str, document: Mapping[str, Any]) -> bool:
        """Whether a filter chooses a job. Raises ``Refusal``: it is none."""
        ...

    @abstractmethod
    def rules(self, document: Any) -> list[str]:
        """What the texts of the contract have against a job, which no schema says."""
        ...

    @abstractmethod
    def lists(self) -> tuple[str, str]:
        """The path of its jobs, and the field of a list that has them."""
        ...

    # -- the judge -------------------------------------------------------------------------------

    def _contract(self, path: str) -> Discovery | None:
        if path.startswith("/computeMetadata/"):
            return None
        kinds = {"/v2/entries": "logging", "/storage/": "storage"}
        kind = next((kind for start, kind in kinds.items() if path.startswith(start)), "jobs")
        return self.contracts["secrets" if "/secrets" in path else kind]

    def judge_request(self, asked: Asked) -> list[str]:
        """See :class:`PlayedService`."""
        contract = self._contract(asked.path)
        if contract is None:
            return []
        found = contract.request(asked.method, asked.path, asked.query, asked.document)
        is_job = (asked.method, asked.path) == ("POST", self.lists()[0])
        return found or (self.rules(asked.document) if is_job else [])

    def judge_answer(self, asked: Asked, reply: Reply) -> list[str]:
        """See :class:`PlayedService`."""
        contract, document = self._contract(asked.path), reply.document
        if contract is None:
            return []
        if reply.status >= 400:
            error = dict(document["error"])
            word = error.pop("status")
            wrong = [] if word in _CODES else [f"status: there is no code {word!r}"]
            return wrong + self._status.complaints("GoogleRpcStatus", error, is_request=False)
        key = self.lists()[1]
        if key in document:  # the rest is made as these are
            document = {**document, key: document[key][:20]}
        return contract.answer(asked.method, asked.path, document)

    def refusal(self, refusal: Refusal) -> Reply:
        """See :class:`PlayedService`."""
        word, text = refusal.code, str(refusal) or "no"
        details: list[dict[str, Any]] = []
        if word == "InvalidParametersError":
            field, _, description = text.partition(": ")
            violation = {"field": field, "description": description}
            details.append({"@type": f"{_RPC}.BadRequest", "fieldViolations": [violation]})
            text = "Invalid JSON payload received."
        if self.reason:
            details.append({"@type": f"{_RPC}.ErrorInfo", "reason": self.reason, "domain": "x"})
        if word not in _CODES:
            word = _WORDS[refusal.status]
        error = {"code": refusal.status, "message": text, "status": word, "details": details}
        return Reply(refusal.status, {"error": error})

    def authenticate(self, asked: Asked) -> None:
        """See :class:`PlayedService`. A job reads secrets as its own account."""
        if asked.path.startswith("/computeMetadata/"):
            if asked.headers.get("metadata-flavor") != "Google":
                raise Refusal(403, "", "Missing Metadata-Flavor:Google header.")
            return
        shown = asked.headers.get("authorization", "").removeprefix("Bearer ")
        tokens = {JOB_TOKEN} if asked.path.endswith(":access") else self.tokens
        if shown not in tokens:
            text = "Request had invalid authentication credentials. Expected OAuth 2 access token."
            raise Refusal(401, "UNAUTHENTICATED", text)
        if PROJECT not in asked.path and asked.path.startswith("/v1/"):
            raise Refusal(403, "", "Permission denied on resource project.")

    # -- what is asked ---------------------------------------------------------------------------

    def perform(self, asked: Asked) -> Reply:
        """See :class:`PlayedService`."""
        path = asked.path
        if path.startswith("/computeMetadata/"):
            return Reply(200, {"access_token": JOB_TOKEN, "expires_in": 3599})
        if path == "/v2/entries:list":
            return Reply(200, self._entries(asked.document))
        if "/secrets" in path:
            return Reply(200, self._secret(asked))
        if path.startswith("/storage/"):
            return Reply(200, self._objects(path.split("/")[4], asked.query.get("prefix", "")))
        jobs, _ = self.lists()
        if path == jobs:
            return Reply(200, self.create(asked) if asked.method == "POST" else self._list(asked))
        if path.startswith(f"{jobs}/"):
            return Reply(200, self._of_job(asked.method, path.removeprefix(f"{jobs}/")))
        return Reply(200, self.more(path))

    def more(self, path: str) -> Any:
        """What else it is asked. Raises ``Refusal``."""
        raise Refusal(404, "", f"{path} was not found.")

    def _list(self, asked: Asked) -> Any:
        start, query = asked.query.get("pageToken", "0"), asked.query
        if not start.isdecimal():
            raise Refusal(400, "", "Page token is invalid.")
        end = int(start) + max(1, min(int(query.get("pageSize", 20)), MOST))
        shown = [
            (id_, job)
            for id_, job in self.machines.jobs.items()
            if job.name not in self.hidden
            and ("filter" not in query or self.chosen(query["filter"], id_, job.document))
        ]
        rows = [self.shape(id_, job) for id_, job in shown[int(start) : end]]
        if "readMask" in query:
            fields = query["readMask"].split(",")
            rows = [{key: row[key] for key in fields if key in row} for row in rows]
        following = {"nextPageToken": str(end)} if len(shown) > end else {}
        return {**({self.lists()[1]: rows} if rows else {}), **following}

    def _of_job(self, method: str, rest: str) -> Any:
        id_, _, verb = rest.partition(":")
        job = self.machines.jobs.get(id_)
        if job is None:
            raise Refusal(404, "", f"The job {id_} was not found.")
        if verb == "cancel":
            if job.ended is not None:
                raise Refusal(400, "FAILED_PRECONDITION", "The job has ended already.")
            self.machines.stop(id_, grace_s=5.0)
            return {}
        if method == "DELETE":
            if job.ended is None:
                raise Refusal(400, "FAILED_PRECONDITION", "The job has not ended.")
            self.machines.remove(id_)
            return {"name": f"projects/1/operations/{id_}", "done": True, "response": {}}
        return self.shape(id_, job)

    def _entries(self, body: Mapping[str, Any]) -> Any:
        if not self.reads_logs:
            raise Refusal(403, "", "Permission 'logging.logEntries.list' denied.")
        if body["resourceNames"] != [f"projects/{PROJECT}"]:
            raise Refusal(403, "", "The caller does not have permission.")
        wanted = _LOGS.fullmatch(body["filter"])
        if wanted is None or body["orderBy"] != "timestamp desc":
            raise Refusal(400, "", f"Unparseable filter: {body['filter']}")
        id_, of_service = wanted["id"], wanted["sign"] == "="
        job = self.machines.jobs.get(id_)
        usual = ["Waiting for job to be provisioned."] if job is not None and job.waits else []
        lines = self.service_lines.get(id_, usual) if of_service else []
        if job is not None and not of_service and job.output.exists():
            lines = job.output.read_text(errors="replace").splitlines()
        task = "service" if of_service else self.main_task
        entries = [self._entry(id_, task, number, line) for number, line in enumerate(lines)]
        return {"entries": entries[::-1][: body["pageSize"]]} if entries else {}

    def _entry(self, id_: str, task: str, number: int, line: str) -> Any:
        labels = {"job_id": id_, "task_name": task, "project_id": PROJECT}
        payload = {"textPayload": line} if number % 2 else {"jsonPayload": {"message": line}}
        return {
            "logName": f"projects/{PROJECT}/logs/{task}",
            "resource": {"type": "ml_job", "labels": labels},
            "timestamp": moment(self.now()),
            "insertId": str(number),
            "severity": "INFO",
            **payload,
        }

    def _secret(self, asked: Asked) -> Any:
        base = f"/v1/projects/{PROJECT}/secrets"
        name, _, verb = asked.path.removeprefix(f"{base}/").partition(":")
        if asked.path == base:
            name = asked.query["secretId"]
            if not re.fullmatch(r"[A-Za-z0-9_-]{1,255}", name):
                raise Refusal(400, "", "Secret id is invalid.")
            if name in self.secrets:
                raise Refusal(409, "", f"Secret [{name}] already exists.")
            self.secrets[name] = []
            return {"name": f"projects/1/secrets/{name}", "labels": asked.document["labels"]}
        name, _, version = name.partition("/versions/")
        if name not in self.secrets or (version and not self.secrets[name]):
            raise Refusal(404, "", f"Secret [{name}] not found or has no versions.")
        if asked.method == "DELETE":
            del self.secrets[name]
            return {}
        versions = self.secrets[name]
        if verb == "addVersion":
            versions.append(asked.document["payload"]["data"])
        about = {"name": f"projects/1/secrets/{name}/versions/{len(versions)}"}
        if verb == "access":
            return {**about, "payload": {"data": versions[-1]}}
        return {**about, "state": "ENABLED"}

    def _objects(self, bucket: str, prefix: str) -> Any:
        if bucket not in self.buckets:
            raise Refusal(404, "", "The specified bucket does not exist.")
        names = [each for each in self.buckets[bucket] if each.startswith(prefix)][:1]
        items = [{"kind": "storage#object", "name": each, "bucket": bucket} for each in names]
        return {"kind": "storage#objects", **({"items": items} if items else {})}

    def take(
        self, id_: str, document: Mapping[str, Any], commands: Sequence[Any], wall: str
    ) -> Any:
        """Have machines run a job; returns it as it is answered.

        Args:
            id_: by which it is known.
            document: as it came.
            commands: of its pools: their names, how many nodes each has, and the command of each.
            wall: its longest time, as ``10s``.
        """
        if not self.quota:
            text = "The following quota metrics exceed quota limits: custom_model_training_cpus"
            raise Refusal(429, "RESOURCE_EXHAUSTED", text)
        cluster = {pool: [f"{pool}-{n}:2222" for n in range(many)] for pool, many, _ in commands}
        argvs, variables = [], []
        for pool, many, command in commands:
            for index in range(many):
                spec = {"cluster": cluster, "task": {"type": pool, "index": index}}
                own = {"CLUSTER_SPEC": json.dumps(spec)} if len(commands) > 1 else {}
                argvs.append(command)
                variables.append({"GCE_METADATA_HOST": self.address.partition("//")[2], **own})
        name = document.get("labels", {}).get(ATTEMPT, id_)
        job = PlayedJob(name, argvs, variables, document, float(wall.removesuffix("s")))
        self.machines.add(id_, job)
        return self.shape(id_, job)

    # -- for tests -------------------------------------------------------------------------------

    def foreign(self, name: str) -> None:
        """See :class:`PlayedService`."""
        self._wait(name, {ATTEMPT: name, MARK: "0" * 32})

    def fill(self, label: str, many: int) -> None:
        """See :class:`PlayedService`."""
        for number in range(many):
            name = f"{label}-worker-{number}"
            self._wait(name, {ATTEMPT: name, SERVICE: label})

    def _wait(self, name: str, labels: Mapping[str, str]) -> None:
        document = {"displayName": name, "labels": labels}
        job = PlayedJob(name, [["sleep", "1000"]], [{}], document)
        self.machines.add(self.new_id(name), job)

    @abstractmethod
    def new_id(self, name: str) -> str:
        """The id of a new job."""
        ...

    def shown(self, name: str) -> str:
        """See :class:`PlayedService`."""
        job, (id_,) = self.job(name), self.ids(name)
        return str([self.shape(id_, job), job.argvs, job.variables, job.output.read_text()])

    def renew(self, token: str) -> None:
        """See :class:`PlayedService`."""
        self.token_file.write_text(f"{token}\n")


def moment(seconds: float | None) -> str:
    """A moment as Google writes it."""
    assert seconds is not None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def times_of(job: PlayedJob) -> dict[str, str]:
    """The moments of a job, as far as it has come."""
    given = {"createTime": job.created, "startTime": job.started, "endTime": job.ended}
    return {key: moment(value) for key, value in given.items() if value}


def why_ended(job: PlayedJob, replica: str) -> tuple[int, str]:
    """The code and the sentence of an end that was none of its own will."""
    code = job.code if job.code is None or job.code >= 0 else 128 - job.code
    sentences = {
        STOPPED: (1, "CANCELED"),
        PREEMPTED: (10, f"The replica {replica} was preempted."),
        WALL_TIME: (4, "The job has exceeded its maximum running time."),
        OUT_OF_MEMORY: (
            9, f"The replica {replica} ran out-of-memory and exited with a non-zero status of 137.",
        ),
    }  # fmt: skip
    usual = (3, f"The replica {replica} exited with a non-zero status of {code}.")
    return sentences.get(job.cause, usual)


class PlayedVertex(PlayedGoogle):
    """Vertex AI. It chooses the names of jobs itself."""

    main_task = "workerpool0-0"
    contract_file = "aiplatform.v1.json"
    waiting_word = "JOB_STATE_QUEUED"
    running_word = "JOB_STATE_RUNNING"
    odd_word = "JOB_STATE_LEVITATING"
    _FILTER = re.compile(r'labels\.(?P<key>[a-z0-9_-]+)="(?P<value>[a-z0-9_-]*)"')

    def __init__(self, folder: Path, places: int = 4) -> None:
        self._number = 4_000_000_000_000_000_000
        self.resources = {"warm": "RUNNING"}
        super().__init__(folder, places)

    def lists(self) -> tuple[str, str]:
        """See :class:`PlayedGoogle`."""
        return f"/v1/projects/{PROJECT}/locations/{REGION}/customJobs", "customJobs"

    def new_id(self, name: str) -> str:
        """See :class:`PlayedGoogle`."""
        self._number += 1
        return str(self._number)

    def create(self, asked: Asked) -> Any:
        """See :class:`PlayedGoogle`."""
        document, spec = asked.document, asked.document["jobSpec"]
        pools = spec["workerPoolSpecs"]
        for number, pool in enumerate(pools):
            if pool["machineSpec"]["machineType"] not in MACHINES:
                field = f"job_spec.worker_pool_specs[{number}].machine_spec.machine_type"
                text = f"Field: {field}; Message: Machine type is not supported."
                raise Refusal(400, "", f"List of found errors: 1.{text}")
        commands = [
            (f"workerpool{number}", int(pool["replicaCount"]), pool["containerSpec"]["command"])
            for number, pool in enumerate(pools)
        ]
        wall = spec["scheduling"].get("timeout", "604800s")
        return self.take(self.new_id(""), document, commands, wall)

    def shape(self, id_: str, job: PlayedJob) -> dict[str, Any]:
        """See :class:`PlayedGoogle`."""
        state = job.word or self._state(job)
        ends = {}
        if state in ("JOB_STATE_FAILED", "JOB_STATE_CANCELLED"):
            code, text = why_ended(job, self.main_task)
            ends = {"error": {"code": code, "message": text}}
        name = f"projects/1/locations/{REGION}/customJobs/{id_}"
        return {"name": name, **job.document, "state": state, **times_of(job), **ends}

    def _state(self, job: PlayedJob) -> str:
        if job.ended is None:
            running = "CANCELLING" if job.cause == STOPPED else "RUNNING"
            return f"JOB_STATE_{running if job.runs else 'QUEUED'}"
        if job.cause == STOPPED:
            return "JOB_STATE_CANCELLED"
        return "JOB_STATE_FAILED" if job.code or job.cause else "JOB_STATE_SUCCEEDED"

    def chosen(self, text: str, id_: str, document: Mapping[str, Any]) -> bool:
        """See :class:`PlayedGoogle`."""
        wanted = self._FILTER.fullmatch(text)
        if wanted is None:
            raise Refusal(400, "", f"Invalid filter: {text}")
        return document["labels"].get(wanted["key"]) == wanted["value"]

    def rules(self, document: Any) -> list[str]:
        """See :class:`PlayedGoogle`."""
        spec, wrong = document["jobSpec"], labels_wrong(document.get("labels", {}))
        pools = spec["workerPoolSpecs"]
        if len(document["displayName"]) > 128:
            wrong.append("displayName: is longer than 128 characters")
        if not pools or pools[0].get("replicaCount") != "1":
            wrong.append("jobSpec.workerPoolSpecs.0: the first pool has one replica")
        reaches = "network" in spec or "pscInterfaceConfig" in spec
        for number, pool in enumerate(pools):
            at = f"jobSpec.workerPoolSpecs.{number}"
            if ("containerSpec" in pool) == ("pythonPackageSpec" in pool):
                wrong.append(f"{at}: has a container, or a package")
            for share in pool.get("nfsMounts", []):
                if not reaches or not share["path"].startswith("/"):
                    wrong.append(f"{at}.nfsMounts: wants a network, and a path from the root")
        scheduling = spec.get("scheduling", {})
        if not scheduling.get("disableRetries"):
            wrong.append("jobSpec.scheduling: would start a job again")
        return wrong

    def more(self, path: str) -> Any:
        """See :class:`PlayedGoogle`."""
        name = path.rpartition("/persistentResources/")[2]
        if name not in self.resources:
            raise Refusal(404, "", f"The PersistentResource {name} was not found.")
        return {"name": path.removeprefix("/v1/"), "state": self.resources[name]}


class PlayedAiPlatform(PlayedGoogle):
    """AI Platform Training. The ids of jobs are their users', and never free again."""

    main_task = "master-replica-0"
    contract_file = "ml.v1.json"
    #: They have no meaning for a container of one's own.
    optional = (
        "GoogleCloudMlV1__TrainingInput.packageUris",
        "GoogleCloudMlV1__TrainingInput.pythonModule",
    )
    waiting_word = "QUEUED"
    running_word = "RUNNING"
    odd_word = "LEVITATING"
    _FILTER = re.compile(r"jobId:(?P<start>\w+)\*")

    def __init__(self, folder: Path, places: int = 4) -> None:
        self._taken: set[str] = set()
        self.accelerators = ["NVIDIA_TESLA_T4", "NVIDIA_TESLA_V100"]
        self.position = 0
        super().__init__(folder, places)

    def lists(self) -> tuple[str, str]:
        """See :class:`PlayedGoogle`."""
        return f"/v1/projects/{PROJECT}/jobs", "jobs"

    def new_id(self, name: str) -> str:
        """See :class:`PlayedGoogle`."""
        return f"bq_{name.replace('-', '_')}"

    def create(self, asked: Asked) -> Any:
        """See :class:`PlayedGoogle`."""
        document, given = asked.document, asked.document["trainingInput"]
        id_ = document["jobId"]
        if id_ in self._taken or id_ in self.machines.jobs:
            text = f"Field: job.job_id Error: A job with this id already exists: {id_}."
            raise Refusal(409, "", text)
        if given["region"] != REGION:
            raise Refusal(400, "", f"Field: region Error: {given['region']} is not supported.")
        if given["masterType"] not in MACHINES:
            raise Refusal(400, "", "Field: master_type Error: The machine type is not supported.")
        commands = [("master", 1, given["masterConfig"]["containerCommand"])]
        if "workerCount" in given:
            workers = int(given["workerCount"])
            commands.append(("worker", workers, given["workerConfig"]["containerCommand"]))
        wall = given.get("scheduling", {}).get("maxRunningTime", "604800s")
        made = self.take(id_, document, commands, wall)
        self._taken.add(id_)
        return made

    def shape(self, id_: str, job: PlayedJob) -> dict[str, Any]:
        """See :class:`PlayedGoogle`."""
        state = job.word or self._state(job)
        ends = {}
        if state in ("FAILED", "CANCELLED"):
            ends = {"errorMessage": why_ended(job, "master 0")[1]}
        document = {key: value for key, value in job.document.items() if key != "displayName"}
        more = {"jobPosition": str(self.position)} if state == "QUEUED" else {}
        return {**document, "jobId": id_, "state": state, **times_of(job), **more, **ends}

    def _state(self, job: PlayedJob) -> str:
        if job.ended is None:
            running = "CANCELLING" if job.cause == STOPPED else "RUNNING"
            return running if job.runs else "QUEUED"
        if job.cause in (STOPPED, WALL_TIME):
            return "CANCELLED"
        return "FAILED" if job.code or job.cause else "SUCCEEDED"

    def chosen(self, text: str, id_: str, document: Mapping[str, Any]) -> bool:
        """See :class:`PlayedGoogle`."""
        wanted = self._FILTER.fullmatch(text)
        if wanted is None:
            raise Refusal(400, "", f"Invalid filter: {text}")
        return id_.startswith(wanted["start"])

    def rules(self, document: Any) -> list[str]:
        """See :class:`PlayedGoogle`."""
        given, wrong = document["trainingInput"], labels_wrong(document.get("labels", {}))
        if not re.fullmatch(r"[A-Za-z]\w{0,127}", document["jobId"], re.ASCII):
            wrong.append("jobId: is no id of letters, digits and _")
        if given["scaleTier"] == "CUSTOM" and "masterType" not in given:
            wrong.append("trainingInput: masterType is missing")
        if ("imageUri" in given.get("masterConfig", {})) == ("runtimeVersion" in given):
            wrong.append("trainingInput: has an image, or a runtime")
        if ("workerCount" in given) != ("workerType" in given):
            wrong.append("trainingInput: workers have a type and a count")
        return wrong

    def more(self, path: str) -> Any:
        """See :class:`PlayedGoogle`."""
        region = path.rpartition("/")[2]
        if region != REGION:
            raise Refusal(404, "", f"Location {region} was not found.")
        able = {"type": "TRAINING", "availableAccelerators": self.accelerators}
        return {"name": path.removeprefix("/v1/"), "capabilities": [able]}


def labels_wrong(labels: Mapping[str, str]) -> list[str]:
    """What Google has against labels."""
    wrong = [f"labels.{key}" for key, value in labels.items()
             if not (_LABEL_KEY.fullmatch(key) and _LABEL_VALUE.fullmatch(value))]  # fmt: skip
    return [*wrong, *(["labels: are more than 64"] if len(labels) > 64 else [])]


class PlayedOnGoogle:
    """See :class:`~tests.support.services.played.PlayedPlatform`.

    Args:
        made: the service of jobs.
        api: as in ``endpoints`` of the file.
        keys: of the section, that are its own.
    """

    def __init__(self, made: type[PlayedGoogle], api: str, keys: Mapping[str, Any]) -> None:
        self._made, self._api, self._keys = made, api, keys

    @contextlib.contextmanager
    def serving(self, folder: Path, places: int) -> Iterator[PlayedGoogle]:
        """See :class:`PlayedPlatform`."""
        (folder / "service").mkdir(exist_ok=True)
        with serving(self._made(folder / "service", places)) as service:
            yield service

    def section(self, service: PlayedService, folder: Path) -> dict[str, Any]:
        """See :class:`PlayedPlatform`."""
        assert isinstance(service, PlayedGoogle)
        names = (self._api, "logging", "secretmanager", "storage")
        return {
            "project": PROJECT,
            "region": REGION,
            "image": "us-docker.pkg.dev/lab/nas:1",
            "token": f"file:{service.token_file}",
            "endpoints": dict.fromkeys(names, service.address),
            **self._keys,
        }


VERTEX = PlayedOnGoogle(
    PlayedVertex, "aiplatform", {"platform": "vertex", "machineType": "n1-standard-4"}
)
AI_PLATFORM = PlayedOnGoogle(
    PlayedAiPlatform, "ml", {"platform": "aiplatform", "scaleTier": "BASIC"}
)
