"""An endpoint over an experiment that the real core has written, asked without a socket."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import to_json
from dispatcher.nni.rest.application import NniEndpoint
from dispatcher.nni.rest.peers import PEER
from dispatcher.nni.rest.settings import EndpointSettings
from dispatcher.store import SqliteJournal
from dispatcher.web.audit import AuditLog
from tests.unit.queries.evolution import make_folder
from tests.unit.store.life import Life

EXPERIMENT = "digits-abc123"


class Answer(NamedTuple):
    """An answer as it came."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body, which must be JSON."""
        return json.loads(self.body)


class Asked:
    """An endpoint in this process, with an experiment that is lived by hand."""

    def __init__(self, base: Path, state: Path, *, retries: int = 0, **settings: Any) -> None:
        self.folder = make_folder(base, id=EXPERIMENT)
        values = {
            "experimentName": "digits",
            "tuner": {"name": "random"},
            "trialCommand": "true",
            "trialConcurrency": 2,
            "maxExperimentDuration": "2h",
            "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        }
        text = to_json(build_experiment(values, base_folder=self.folder))
        (self.folder / "experiment.json").write_text(text)
        journal = SqliteJournal.open(self.folder / "journal.sqlite", epoch=1)
        self.life = Life(journal, slots=4, trial_retries=retries, retry_backoff_s=0.0)
        self.life.begin()
        self.finished = 0
        self.settings = EndpointSettings(folder=self.folder, port=8080, state=state, **settings)
        self.endpoint = NniEndpoint(self.settings, AuditLog(None), self._finish)

    def _finish(self) -> None:
        self.finished += 1

    def close(self) -> None:
        """Let go of all."""
        self.endpoint.close()
        self.life.journal.close()

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        peer: int | None = -1,
        api: str = "/api/v1/nni",
        **headers: str,
    ) -> Answer:
        """Ask as a process of a user does; -1 is ours, None one that nobody knows."""
        data = b"" if body is None else json.dumps(body).encode()
        given = {"host": "localhost:8080", "content-type": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        whole, _, query = f"{api}{path}".partition("?")
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": whole,
            "raw_path": whole.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
            "client": ("127.0.0.1", 5),
            "server": ("127.0.0.1", 8080),
            "state": {PEER: os.getuid() if peer == -1 else peer},
        }
        return asyncio.run(_answered(self.endpoint.app, scope, data))

    def get(self, path: str) -> Any:
        """The JSON at a path, which must be there."""
        answer = self("GET", path)
        assert answer.status == 200, answer
        return answer.json()


async def _answered(app: Any, scope: dict[str, Any], data: bytes) -> Answer:
    sent: list[dict[str, Any]] = []
    asked = iter([{"type": "http.request", "body": data, "more_body": False}])
    over = asyncio.Event()

    async def receive() -> dict[str, Any]:
        for one in asked:
            return one
        await over.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            over.set()

    await app(scope, receive, send)
    start = sent[0]
    headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], headers, b"".join(one.get("body", b"") for one in sent[1:]))


Make = Callable[..., Asked]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Endpoints, with settings of their own."""
    made: list[Asked] = []

    def one(**settings: Any) -> Asked:
        made.append(Asked(tmp_path / f"home{len(made)}", tmp_path / "state", **settings))
        return made[-1]

    yield one
    for each in made:
        each.close()


@pytest.fixture
def asked(make: Make) -> Asked:
    """One with the usual settings."""
    return make()
