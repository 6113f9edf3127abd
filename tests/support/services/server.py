"""A service over HTTP that keeps state, judges what comes and what it answers, and has faults."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from ruamel.yaml import YAML

from tests.support.services.machines import Machines, PlayedJob

TOKEN = "t0ken-of-tests"

JSON = "application/json"


class Refusal(Exception):
    """Raised to answer with an error.

    Args:
        status: of the answer.
        code: its word for programs.
        text: its sentence for people.
    """

    def __init__(self, status: int, code: str = "", text: str = "") -> None:
        super().__init__(text or code)
        self.status = status
        self.code = code
        self.text = text


@dataclass
class Reply:
    """An answer."""

    status: int
    document: Any = None
    kind: str = JSON
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """A request.

    Attributes:
        method: of HTTP.
        path: below the service's address.
        query: parameters.
        headers: as they came, by names in lower case.
        content: of its body.
        kind: the type of its body, without parameters.
        document: its body, read; None: it has none.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    content: bytes
    kind: str
    document: Any


@dataclass
class Fault:
    """An answer in place of those to some requests.

    Attributes:
        what: the beginning of ``METHOD /path``.
        status: of the answer; None: the connection is cut.
        done: whether the request is carried out before.
        headers: of the answer.
        times: for how many requests.
    """

    what: str
    status: int | None
    done: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1


class PlayedService(ABC):
    """The base of services of ours. One for a system answers in :meth:`perform`, judges in
    :meth:`judge_request` and :meth:`judge_answer`, and has the form of refusals.

    Attributes:
        address: of the server; what stands before the paths of the contract is its own
            (:attr:`below`).
        asked: what it was asked, as ``METHOD /path``.
        misspelt: what the contract has against requests, which were refused; must stay empty.
        wrong: what it has against answers; must stay empty.
        tokens: those that it takes.
        faults: that it has now.
        skew_s: how much its clock is ahead.
        hidden: names that no list has, as where a page of it is lost.
        is_away: whether it is: connections are cut.
        babbles: a text that it gives for an answer, whatever it is asked; empty: it does not.
        wrong_words: whether it may show states that its contract does not know.
    """

    below = ""

    #: Whether it says that it has started a job again.
    tells_restarts = True

    #: Whether it says how a job is.
    tells_states = True

    #: Its words for a job that waits, one that runs, and one that it never had.
    waiting_word = "WAITING"
    running_word = "RUNNING"
    odd_word = "LEVITATING"

    def __init__(self, folder: Path, places: int = 4) -> None:
        self.lock = threading.RLock()
        self.asked: list[str] = []
        self.misspelt: list[str] = []
        self.wrong: list[str] = []
        self.tokens = {TOKEN}
        self.faults: list[Fault] = []
        self.skew_s = 0.0
        self.hidden: set[str] = set()
        self.is_away = False
        self.babbles = ""
        self.wrong_words = False
        self.machines = Machines(folder, places, self.now, self.lock)
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        serve = self._server.serve_forever
        self._thread = threading.Thread(target=serve, args=(0.02,), daemon=True)
        self._thread.start()

    # -- for each system -------------------------------------------------------------------------

    @abstractmethod
    def perform(self, asked: Asked) -> Reply:
        """Do what is asked, with the lock held. Raises ``Refusal``."""
        ...

    @abstractmethod
    def judge_request(self, asked: Asked) -> list[str]:
        """What the contract has against a request."""
        ...

    @abstractmethod
    def judge_answer(self, asked: Asked, reply: Reply) -> list[str]:
        """What the contract has against an answer."""
        ...

    @abstractmethod
    def refusal(self, refusal: Refusal) -> Reply:
        """The answer to what is refused, in the service's form."""
        ...

    def authenticate(self, asked: Asked) -> None:
        """Raise ``Refusal`` for one whom it does not know."""
        if asked.headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            raise Refusal(401, "UnauthorizedUserError", "the token is not valid, or has expired")

    @abstractmethod
    def foreign(self, name: str) -> None:
        """Have a job take a name that nobody of ours has ordered; it waits for ever."""
        ...

    @abstractmethod
    def fill(self, label: str, many: int) -> None:
        """Have many jobs ``LABEL-worker-NUMBER`` that wait for ever."""
        ...

    @abstractmethod
    def shown(self, name: str) -> str:
        """All that it shows of a job to others, as one text."""
        ...

    @abstractmethod
    def renew(self, token: str) -> None:
        """Write a token where the section of the file finds it."""
        ...

    # -- for tests -------------------------------------------------------------------------------

    def now(self) -> float:
        """The time by its clock (seconds since the epoch)."""
        return time.time() + self.skew_s

    def fail(
        self,
        what: str,
        status: int | None,
        *,
        done: bool = False,
        times: int = 1,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Answer the next requests whose ``METHOD /path`` begins so with a status, or not at all.

        Args:
            what: the beginning.
            status: of the answer; None: the connection is cut.
            done: whether the request is carried out before.
            times: for how many.
            headers: of the answer.
        """
        with self.lock:
            self.faults.append(Fault(what, status, done, headers or {}, times))

    def job(self, name: str) -> PlayedJob:
        """The job of that name, the newest if there are several."""
        with self.lock:
            return [each for each in self.machines.jobs.values() if each.name == name][-1]

    def ids(self, name: str) -> list[str]:
        """What the service knows jobs of that name by."""
        with self.lock:
            return [id_ for id_, each in self.machines.jobs.items() if each.name == name]

    def alive(self) -> list[str]:
        """The names of all jobs that have not ended."""
        with self.lock:
            return sorted(x.name for x in self.machines.jobs.values() if x.ended is None)

    def delete(self, name: str) -> None:
        """Have an administrator delete a job, record and all."""
        for id_ in self.ids(name):
            self.machines.remove(id_)

    def count(self, what: str) -> int:
        """How many requests began so."""
        with self.lock:
            return sum(each.startswith(what) for each in self.asked)

    def close(self) -> None:
        """Stop serving, and end all jobs."""
        self._server.shutdown()
        self._server.server_close()
        self.machines.close()

    # -- one request -----------------------------------------------------------------------------

    def fault_for(self, what: str) -> Fault | None:
        """The fault that the answer to a request is; it is used up."""
        with self.lock:
            self.asked.append(what)
            fault = next((x for x in self.faults if what.startswith(x.what)), None)
            if fault is not None:
                fault.times -= 1
                if fault.times <= 0:
                    self.faults.remove(fault)
            return fault

    def reply(self, asked: Asked) -> Reply:
        """The answer to a request, judged."""
        try:
            self.authenticate(asked)
            wrong = self.judge_request(asked)
            if wrong:
                self.misspelt += wrong
                raise Refusal(400, "InvalidParametersError", wrong[0])
            with self.lock:
                return self.perform(asked)
        except Refusal as refusal:
            return self.refusal(refusal)


class _Server(ThreadingHTTPServer):
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no news."""


def _handler(service: PlayedService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: Any) -> None:
            """Be silent."""

        def date_time_string(self, timestamp: float | None = None) -> str:
            return formatdate(service.now(), usegmt=True)

        def do_GET(self) -> None:
            self.serve()

        def do_POST(self) -> None:
            self.serve()

        def do_PUT(self) -> None:
            self.serve()

        def do_PATCH(self) -> None:
            self.serve()

        def do_DELETE(self) -> None:
            self.serve()

        def serve(self) -> None:
            split = urlsplit(self.path)
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = unquote(split.path).removeprefix(service.below)
            fault = service.fault_for(f"{self.command} {path}")
            if service.is_away:
                self.close_connection = True
                return
            if service.babbles:
                self.answer(Reply(200, service.babbles, "application/json"))
                return
            asked = self.read(path, split.query, content)
            if fault is None or fault.done:
                reply = self.judged(asked)
            if fault is not None:
                if fault.status is None:
                    self.close_connection = True
                    return
                reply = service.refusal(Refusal(fault.status, "", "a fault of the service"))
                reply.headers |= fault.headers
            self.answer(reply)

        def read(self, path: str, query: str, content: bytes) -> Asked:
            kind = self.headers.get("Content-Type", "").partition(";")[0].strip()
            document: Any = None
            if content:
                try:
                    if "yaml" in kind:
                        document = YAML(typ="safe", pure=True).load(content.decode())
                    else:
                        document = json.loads(content)
                except ValueError as error:
                    service.wrong.append(f"{path}: its body cannot be read: {error}")
            return Asked(
                self.command,
                path,
                {key: values[-1] for key, values in parse_qs(query, True).items()},
                {key.lower(): value for key, value in self.headers.items()},
                content,
                kind,
                document,
            )

        def judged(self, asked: Asked) -> Reply:
            try:
                reply = service.reply(asked)
            except Exception as error:
                service.wrong.append(f"{asked.method} {asked.path}: {error!r}")
                raise
            kind = reply.kind.partition(";")[0]
            wrong = service.judge_answer(asked, Reply(reply.status, reply.document, kind))
            service.wrong += [] if service.wrong_words else wrong
            return reply

        def answer(self, reply: Reply) -> None:
            content = b""
            if isinstance(reply.document, str):
                content = reply.document.encode()
            elif reply.document is not None:
                content = json.dumps(reply.document).encode()
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.kind)
            self.send_header("Content-Length", str(len(content)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

    return Handler


S = TypeVar("S", bound=PlayedService)


@contextlib.contextmanager
def serving(service: S) -> Iterator[S]:
    """A service for a while; what the contract has against anything is a failure of the test."""
    try:
        yield service
    finally:
        service.close()
    assert not service.misspelt, service.misspelt[:5]
    assert not service.wrong, service.wrong[:5]
