"""The client of services over HTTP: what it asks, what it repeats, and what it makes of answers."""

from __future__ import annotations

import http.server
import json
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from dispatcher.errors import BackendError, PassingBackendError, PermanentBackendError
from dispatcher.http_services import client as module
from dispatcher.http_services.client import HttpAddress, HttpClient
from dispatcher.http_services.credentials import Fixed, Proof
from dispatcher.http_services.errors import (
    AlreadyThere,
    Busy,
    Conflict,
    Invalid,
    NotAllowed,
    NotLoggedIn,
    NotThere,
    OverQuota,
    Unreachable,
    Untrusted,
)
from dispatcher.http_services.shapes import list_of_objects
from dispatcher.http_services.signing import HttpRequest, TokenSigner
from dispatcher.http_services.token_bucket import TokenBucket
from tests.support.kubernetes.certificates import Authority


@dataclass
class Given:
    """An answer that is given; ``status`` None: the connection is cut."""

    status: int | None = 200
    content: str = "{}"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Got:
    method: str
    path: str
    headers: Mapping[str, str]
    content: bytes


class Service:
    """A server that gives what a test has laid down, the last thing again and again."""

    def __init__(self, authority: Authority | None = None) -> None:
        self.given: list[Given] = [Given()]
        self.got: list[Got] = []
        self.date = "no date"
        served = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                """Be silent."""

            def serve(self) -> None:
                content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                served.got.append(Got(self.command, self.path, dict(self.headers), content))
                given = served.given.pop(0) if len(served.given) > 1 else served.given[0]
                if given.status is None:
                    self.close_connection = True
                    return
                self.send_response(given.status)
                for name, value in given.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(given.content.encode())))
                self.end_headers()
                self.wfile.write(given.content.encode())

            def date_time_string(self, timestamp: float | None = None) -> str:
                return served.date

            def do_GET(self) -> None:
                self.serve()

            def do_POST(self) -> None:
                self.serve()

            def do_PUT(self) -> None:
                self.serve()

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        scheme = "http"
        if authority is not None:
            scheme = "https"
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            pair = authority.sign("service.tests")
            with tempfile.NamedTemporaryFile() as file:
                file.write(pair.chain + pair.key)
                file.flush()
                tls.load_cert_chain(file.name)
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
            self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.address = f"{scheme}://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Clock:
    """Time that passes by pauses alone."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def there() -> Iterator[Service]:
    made = Service()
    yield made
    made.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def client_of(there: Service, clock: Clock, token: str = "", **options: Any) -> HttpClient:
    signer = TokenSigner(Fixed(Proof(f"Bearer {token}"))) if token else None
    return HttpClient(
        HttpAddress(there.address), signer, environment={}, clock=clock, sleep=clock.sleep,
        **options,
    )  # fmt: skip


@pytest.fixture
def client(there: Service, clock: Clock) -> Iterator[HttpClient]:
    made = client_of(there, clock)
    yield made
    made.close()


def test_a_request_has_its_path_query_body_and_token(there: Service, clock: Clock) -> None:
    there.given = [Given(201, '{"a": [1]}', {"X-More": "yes"})]
    client = client_of(there, clock, "secret-token")
    answer = client.ask("POST", "/v1/jobs", asked="create", query={"b": 2}, body={"c": "é"})
    assert (answer.status, answer.document, answer.headers["x-more"]) == (201, {"a": [1]}, "yes")
    (got,) = there.got
    assert (got.method, got.path) == ("POST", "/v1/jobs?b=2")
    assert json.loads(got.content) == {"c": "é"}
    assert got.headers["Authorization"] == "Bearer secret-token"
    assert got.headers["Content-Type"] == "application/json"
    client.ask("POST", "/yaml", asked="create", body=b"a: 1", kind="text/yaml")
    assert (there.got[-1].content, there.got[-1].headers["Content-Type"]) == (b"a: 1", "text/yaml")


KINDS: list[tuple[int, Any, type[BackendError], type[BackendError]]] = [
    (302, {}, Invalid, PermanentBackendError),
    (400, {"message": "no"}, Invalid, PermanentBackendError),
    (401, {}, NotLoggedIn, PermanentBackendError),
    (403, {}, NotAllowed, PermanentBackendError),
    (403, {"code": "NoEnoughQuotaError"}, OverQuota, PassingBackendError),
    (404, {}, NotThere, PermanentBackendError),
    (409, {}, AlreadyThere, PermanentBackendError),
    (412, {}, Conflict, PassingBackendError),
    (422, {}, Invalid, PermanentBackendError),
    (429, {}, Busy, PassingBackendError),
    (500, {}, Busy, PassingBackendError),
    (504, {}, Busy, PassingBackendError),
    (599, {}, Unreachable, PassingBackendError),
]


@pytest.mark.parametrize("status, document, kind, base", KINDS)
def test_each_refusal_is_of_its_kind(
    status: int,
    document: Any,
    kind: type[BackendError],
    base: type[BackendError],
    client: HttpClient,
    there: Service,
) -> None:
    """Mutation: a fault that passes loses workers for good, or one that stays is asked for ever."""
    there.given = [Given(status, json.dumps(document))]
    with pytest.raises(kind) as refused:
        client.ask("POST", "/", asked="create the job 'a'")
    assert isinstance(refused.value, base)
    assert refused.value.message.startswith("cannot create the job 'a': ")
    assert refused.value.where == there.address.partition("//")[2]


@pytest.mark.parametrize("document, text", [
    ({"message": "no\n such  queue"}, "no such queue"),
    ({"error": {"code": 400, "message": "bad field"}}, "bad field"),
    ({"Code": "X", "Message": "not signed"}, "not signed"),
    ({"error": "plain"}, "it answers 400"),
    ("<html>", "it answers 400"),
    ({"message": "x" * 900}, "x" * 500),
])  # fmt: skip
def test_the_words_of_services_are_passed_on(
    document: Any, text: str, client: HttpClient, there: Service
) -> None:
    given = document if isinstance(document, str) else json.dumps(document)
    there.given = [Given(400, given)]
    with pytest.raises(Invalid) as refused:
        client.ask("GET", "/", asked="look")
    assert refused.value.message == f"cannot look: {text}"


@pytest.mark.parametrize("fault", [Given(500), Given(503), Given(None)], ids=["500", "503", "cut"])
def test_what_changes_nothing_is_asked_again(
    fault: Given, client: HttpClient, there: Service, clock: Clock
) -> None:
    there.given = [fault, fault, Given(200, "[1]")]
    assert client.ask("GET", "/", asked="look").document == [1]
    assert len(there.got) == 3
    assert len(clock.pauses) == 2
    assert all(0.5 <= pause <= 4.0 for pause in clock.pauses), "with a pause each, never the same"


@pytest.mark.parametrize("fault", [Given(500), Given(503, headers={"Retry-After": "1"}),
                                   Given(None)], ids=["500", "503", "cut"])  # fmt: skip
def test_what_may_have_been_done_is_not_asked_for_again(
    fault: Given, client: HttpClient, there: Service
) -> None:
    """Mutation: an answer that was lost makes two jobs."""
    there.given = [fault, Given()]
    with pytest.raises(PassingBackendError):
        client.ask("POST", "/", asked="create")
    assert len(there.got) == 1
    there.given = [Given(429), Given(201)]
    assert client.ask("POST", "/", asked="create").status == 201, "one too many was not done"
    there.given = [Given(500), Given(201)]
    assert client.ask("POST", "/", asked="create", is_repeatable=True).status == 201


def test_an_end_is_put_to_repetition(client: HttpClient, there: Service) -> None:
    there.given = [Given(500)]
    with pytest.raises(Busy):
        client.ask("GET", "/", asked="look")
    assert len(there.got) == 3


def test_a_pause_that_is_asked_for_is_made(
    client: HttpClient, there: Service, clock: Clock
) -> None:
    """A short one within a request, a long one by all who ask. Mutation: `Retry-After: 3600` holds
    up the thread of a service for an hour."""
    there.given = [Given(429, headers={"Retry-After": "3"}), Given()]
    client.ask("GET", "/", asked="look")
    assert clock.pauses == [3.0]
    there.given = [Given(429, headers={"Retry-After": "3600"}), Given()]
    with pytest.raises(Busy) as refused:
        client.ask("GET", "/", asked="look")
    assert refused.value.retry_after_s == 300.0, "bounded"
    with pytest.raises(Busy, match="it has asked for a pause, 300 s of which are left"):
        client.ask("GET", "/", asked="look")
    assert len(there.got) == 3
    assert clock.pauses == [3.0], "nobody slept"
    clock.now += 300.0
    client.ask("GET", "/", asked="look")


class Renewed:
    """A token that is renewed once it was refused."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)

    def headers(self, request: HttpRequest) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.tokens[0]}"}

    def refused(self) -> bool:
        del self.tokens[:-1]
        return True


def test_a_token_is_renewed_once(there: Service, clock: Clock) -> None:
    """Mutation: one that is refused for good is asked with again and again."""
    there.given = [Given(401), Given(200, "[1]")]
    client = HttpClient(HttpAddress(there.address), Renewed("old-token", "new-token"),
                        environment={}, clock=clock, sleep=clock.sleep)  # fmt: skip
    assert client.ask("POST", "/", asked="create").document == [1]
    sent = [got.headers["Authorization"] for got in there.got]
    assert sent == ["Bearer old-token", "Bearer new-token"]
    there.given = [Given(401)]
    with pytest.raises(NotLoggedIn):
        client.ask("GET", "/", asked="look")
    assert len(there.got) == 4


def test_no_secret_is_in_an_error(there: Service, clock: Clock) -> None:
    """Services repeat what they do not understand. Mutation: a token in a log."""
    given = {"message": "no such token: secret-token; the body had k3y-of-agent"}
    there.given = [Given(400, json.dumps(given))]
    client = client_of(there, clock, "secret-token")
    with pytest.raises(Invalid) as refused:
        client.ask("POST", "/", asked="create", body={}, secrets=("k3y-of-agent", ""))
    assert str(refused.value).count("***") == 2
    assert "secret-token" not in str(refused.value)
    assert "k3y" not in str(refused.value)
    assert "secret-token" not in repr(client.__dict__)


@pytest.mark.parametrize(
    "content, expected",
    [
        (
            '[{"id": 7, "env": {"a": [1], "b": 2}, "more": {"x": [1]}}]',
            [{"id": 7, "env": {"a": [1]}}],
        ),
        ('[{"env": null}, {}]', [{"env": None}, {}]),
        ('[{"id": "x", "env": 3}]', [{"id": "x", "env": 3}]),
        ('{"error": "none of yours"}', {"error": "none of yours"}),
        ('[1, "x"]', [1, "x"]),
        ('[{"more": NaN}]', None),
    ],
    ids=["read", "null", "odd field", "no list", "no objects", "lenient"],
)
def test_of_a_long_list_the_fields_that_are_read_come(
    client: HttpClient, there: Service, content: str, expected: object
) -> None:
    """Mutation: an answer of another shape is none, though it says what is wrong."""
    there.given = [Given(200, content)]
    shape = list_of_objects("id", env=["a"])
    came = client.ask("GET", "/", asked="list jobs", shape=shape).document
    if expected is None:  # not JSON, and taken as it was before
        assert [list(each) for each in came] == [["more"]]
    else:
        assert came == expected
    there.given = [Given(200, f"{content[:-2]},,]")]
    with pytest.raises(Unreachable, match="the answer is no JSON"):
        client.ask("GET", "/", asked="list jobs", shape=shape)


def test_a_page_of_a_proxy_is_no_answer(client: HttpClient, there: Service) -> None:
    """Mutation: a login page lists no jobs, so that all of them are gone."""
    there.given = [Given(200, "<html>log in</html>")]
    with pytest.raises(Unreachable, match="the answer is no JSON"):
        client.ask("GET", "/", asked="look")
    assert client.ask("GET", "/", asked="look", accept="text/plain").document.startswith("<html>")
    there.given = [Given(202, "")]
    assert client.ask("PUT", "/", asked="stop").fields == {}


def test_answers_are_bounded(
    client: HttpClient, there: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1 << 20)
    there.given = [Given(200, " " * (2 << 20))]
    with pytest.raises(Unreachable, match="more than 1 MiB"):
        client.ask("GET", "/", asked="look")


def test_a_further_page_is_at_the_same_service(client: HttpClient, there: Service) -> None:
    """Mutation: a token goes to whatever address an answer names."""
    client.ask("GET", f"{there.address}/page/2", asked="look")
    assert there.got[-1].path == "/page/2"
    for other in ("http://127.0.0.1:1/page/2", "https" + there.address[4:] + "/page/2"):
        with pytest.raises(Unreachable, match="another service"):
            client.ask("GET", other, asked="look")
    assert len(there.got) == 1


def test_time_is_that_of_the_service(client: HttpClient, there: Service, clock: Clock) -> None:
    there.date = "Thu, 01 Jan 1970 03:00:00 GMT"
    client.ask("GET", "/", asked="look")
    clock.now += 5.0
    assert client.times.now() == pytest.approx(3 * 3600 + 5.0, abs=1.0)


def test_nobody_is_there(clock: Clock) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        client = HttpClient(HttpAddress(address), environment={}, clock=clock, sleep=clock.sleep)
        with pytest.raises(Unreachable, match="no answer: Connection refused"):
            client.ask("GET", "/", asked="look")


def test_a_service_must_show_a_certificate_of_its_authority(clock: Clock) -> None:
    """Mutation: any certificate will do, and the token goes to anybody."""
    authority, other = Authority(), Authority()
    there = Service(authority)
    try:
        right = HttpClient(HttpAddress(there.address, authority.pem), environment={}, clock=clock)
        assert right.ask("GET", "/", asked="look").document == {}
        right.close()
        for pem in (other.pem, ""):
            wrong = HttpClient(
                HttpAddress(there.address, pem), environment={}, clock=clock, sleep=clock.sleep
            )
            with pytest.raises(Untrusted, match="its certificate is not trusted"):
                wrong.ask("GET", "/", asked="look")
            wrong.close()
        with pytest.raises(PermanentBackendError, match="is no certificate"):
            HttpClient(HttpAddress(there.address, "x"), environment={}).ask("GET", "/", asked="a")
        assert len(there.got) == 1
    finally:
        there.close()


def test_a_bucket_bounds_how_often_a_service_is_asked(there: Service, clock: Clock) -> None:
    """Mutation: repetitions go past it."""
    bucket = TokenBucket(2.0, 1.0, clock=clock, sleep=clock.sleep)
    client = client_of(there, clock, bucket=bucket)
    for _ in range(2):
        client.ask("GET", "/", asked="look")
    assert clock.pauses == []
    client.ask("GET", "/", asked="look")
    assert clock.pauses == [1.0]
    clock.now += 10.0
    for _ in range(2):
        client.ask("GET", "/", asked="look")
    assert clock.pauses == [1.0], "it is full again, and no fuller"


def test_threads_share_a_bucket(clock: Clock) -> None:
    bucket = TokenBucket(1.0, 2.0, clock=clock, sleep=clock.pauses.append)
    take: Callable[[], None] = bucket.take
    threads = [threading.Thread(target=take) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(clock.pauses) == [0.5, 1.0, 1.5]
