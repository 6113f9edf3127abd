"""What no service should answer, and one did once: none of it ends a program, takes its memory,
holds it up for ever, or has it say a secret."""

from __future__ import annotations

import gzip
import json
import logging
import socketserver
import threading
import time
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from dispatcher.errors import BackendError, PermanentBackendError
from dispatcher.http_services import client as module
from dispatcher.http_services.alibaba import AccessKey, AcsSigner, KeyFromUri, error_of_alibaba
from dispatcher.http_services.client import HttpAddress, HttpClient
from dispatcher.http_services.credentials import Fixed, Proof
from dispatcher.http_services.errors import (
    Invalid,
    NotAllowed,
    NotLoggedIn,
    Unreachable,
    error_of_answer,
)
from dispatcher.http_services.google import error_of_google
from dispatcher.http_services.naver import GatewaySigner
from dispatcher.http_services.server_clock import moment_of
from dispatcher.http_services.signing import Signer, TokenSigner

TOKEN = "".join(f"token{number:03}." for number in range(120))
"""A token as long as those of clouds are: longer than any text of a service that is passed on."""


class Raw(socketserver.ThreadingTCPServer):
    """A server that answers with bytes, in pieces with a pause before each."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        self.status, self.head, self.pieces, self.pause_s = "200 OK", b"", [b"{}"], 0.0
        self.got: list[bytes] = []
        self.closed = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = f"http://127.0.0.1:{self.server_address[1]}"

    def gives(self, content: bytes, status: str = "200 OK", head: bytes = b"") -> None:
        self.pieces, self.status, self.head = [content], status, head


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        raw: Any = self.server
        while (line := self.rfile.readline()) not in (b"\r\n", b""):
            raw.got.append(line)
        size = sum(map(len, raw.pieces))
        self.wfile.write(f"HTTP/1.1 {raw.status}\r\nContent-Length: {size}\r\n".encode())
        self.wfile.write(b"Connection: close\r\n" + raw.head + b"\r\n")
        try:
            for piece in raw.pieces:
                raw.closed.wait(raw.pause_s)
                self.wfile.write(piece)
        except OSError:
            return


@pytest.fixture
def raw() -> Iterator[Raw]:
    made = Raw()
    threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def client_of(raw: Raw, signer: Signer | None = None, **options: Any) -> HttpClient:
    return HttpClient(
        HttpAddress(raw.address), signer, environment={}, sleep=lambda _: None, **options
    )


def whole(error: BaseException) -> str:
    """All that a log would have of an error."""
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize("status", ["200 OK", "400 Bad"])
def test_a_document_of_a_hundred_thousand_lists_is_none(raw: Raw, status: str) -> None:
    """Mutation: the library's error about it ends what nobody expects it to end."""
    raw.gives(b"[" * 100_000, status)
    with pytest.raises((Unreachable, Invalid)):
        client_of(raw).ask("GET", "/", asked="look")


def test_a_small_answer_that_unpacks_to_a_large_one_is_bounded(
    raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: nobody bounds what comes of it."""
    monkeypatch.setattr(module, "MOST_BYTES", 1 << 16)
    raw.gives(gzip.compress(b" " * (8 << 20)), head=b"Content-Encoding: gzip\r\n")
    with pytest.raises(Unreachable, match="the answer has more than"):
        client_of(raw).ask("GET", "/", asked="look")


def test_an_answer_that_comes_drop_by_drop_is_given_up(
    raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each drop comes in time, and so would the last one, in a year. Mutation: a platform is not
    asked again until then."""
    monkeypatch.setattr(module, "WHOLE_S", 0.2)
    raw.pieces, raw.pause_s = [b" "] * 100, 0.03
    began = time.monotonic()
    with pytest.raises(Unreachable, match="not whole after"):
        client_of(raw).ask("POST", "/", asked="look")
    assert time.monotonic() - began < 2.0


@pytest.mark.parametrize("link", [".tests/2", "@127.0.0.1:1/2", ":1/2", "https://[x/2", "2"])
def test_a_link_is_no_end_of_a_host(raw: Raw, link: str) -> None:
    """``https://HOST`` and a link ``.tests/2`` is another host, which gets the token. Mutation: a
    link is a path because no ``://`` is in it."""
    with pytest.raises(Unreachable, match="another service"):
        client_of(raw, TokenSigner(Fixed(Proof("Bearer secret-token")))).ask("GET", link, asked="x")
    assert raw.got == []


@pytest.mark.parametrize("text", [f"no such token: {TOKEN}", f"{'x' * 480} {TOKEN}"])
def test_a_long_secret_is_hidden_before_a_text_is_cut(raw: Raw, text: str) -> None:
    """Texts of services are cut, and of a secret that is cut the beginning would be left. Mutation:
    it is looked for afterwards."""
    raw.gives(json.dumps({"message": text}).encode(), "400 Bad")
    client = client_of(raw, TokenSigner(Fixed(Proof(f"Bearer {TOKEN}"))))
    with pytest.raises(Invalid) as refused:
        client.ask("GET", "/", asked="look")
    assert "token00" not in whole(refused.value)
    assert "***" in refused.value.message


def test_a_secret_with_letters_that_are_written_otherwise_is_hidden(raw: Raw) -> None:
    """In JSON a quote and an umlaut are written in more ways than one. Mutation: one is hidden."""
    secret = 'pässword"with\nmore'
    for ascii_ in (True, False):
        text = json.dumps({"error": {"message": [f"is {secret}?"]}}, ensure_ascii=ascii_)
        raw.gives(text.encode(), "400 Bad")
        with pytest.raises(Invalid) as refused:
            client_of(raw).ask("PUT", "/", asked="create", secrets=(secret,))
        assert "ssword" not in whole(refused.value)


@pytest.mark.parametrize("key", ["s3cret\nmore", "s3cret-\N{EURO SIGN}", "s3cret\x85"])
def test_a_key_that_no_header_can_have_is_in_no_error(raw: Raw, key: str) -> None:
    """Mutation: the library's error, which has the whole header."""
    acs = AcsSigner(OneKey(AccessKey("id", "secret", key)))
    for signer in (GatewaySigner(lambda: "a", lambda: "b", lambda: key), acs):
        with pytest.raises(NotLoggedIn) as refused:
            client_of(raw, signer).ask("GET", "/", asked="look")
        assert "s3cret" not in whole(refused.value)
    assert raw.got == []


class OneKey:
    """A key that is always the same."""

    def __init__(self, key: AccessKey) -> None:
        self._key = key

    def key(self) -> AccessKey:
        return self._key

    def refused(self) -> None:
        """Have no other."""


def test_an_address_with_a_password_is_in_no_log(
    raw: Raw, caplog: pytest.LogCaptureFixture
) -> None:
    """Some services want a password in the query, and the library logs addresses: at level debug
    all of them, and as a warning that of an answer whose headers it cannot read. Mutation: it
    does."""
    caplog.set_level(logging.DEBUG)
    raw.gives(b"{}", head=b"no header at all\r\nX: y\r\n")
    client_of(raw).ask("GET", "/", asked="look", query={"password": "hunter2"})
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("date", [
    "Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "Mon, 01 Jan 2024 00:00:00 +99999999999999",
    "Mon, 01 Jan 1940 00:00:00 GMT", "\N{LATIN SMALL LETTER E WITH ACUTE}", "0", "",
])  # fmt: skip
def test_a_date_that_is_none_is_passed_over(raw: Raw, date: str) -> None:
    """Mutation: a number that no date can have ends the question."""
    raw.gives(b"[]", head=f"Date: {date}\r\n".encode("latin-1"))
    client = client_of(raw)
    assert client.ask("GET", "/", asked="look").document == []
    assert client.times.now() == pytest.approx(time.time(), abs=60.0)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+00:00",
                                  "1970-01-01T00:00:00Z"])  # fmt: skip
def test_the_zero_of_a_clock_is_no_moment(text: str) -> None:
    """What has not happened yet is dated so by programs in Go and C#. Mutation: a job that began in
    the year 1 has run for longer than it may."""
    assert moment_of(text) is None


@pytest.mark.parametrize("error_of", [error_of_answer, error_of_google, error_of_alibaba])
@pytest.mark.parametrize("document", [
    {"error": {"details": 5}}, {"error": {"details": [{"fieldViolations": [None, "x"]}]}},
    {"error": None}, {"error": {"message": {"a": None}, "status": [], "code": {}}}, [None], 5,
    {"error": {"details": [{"fieldViolations": 7, "reason": []}]}},
])  # fmt: skip
def test_what_an_error_means_is_known_by_its_status_at_least(
    raw: Raw, error_of: Any, document: object
) -> None:
    """Mutation: the reader of its details fails, and so does everything."""
    raw.gives(json.dumps(document).encode(), "403 Forbidden")
    with pytest.raises(NotAllowed):
        client_of(raw, error_of=error_of).ask("GET", "/", asked="look")


def test_a_code_is_short(raw: Raw) -> None:
    raw.gives(json.dumps({"Code": "x" * 100_000, "Message": "no"}).encode(), "400 Bad")
    with pytest.raises(BackendError) as refused:
        client_of(raw, error_of=error_of_alibaba).ask("GET", "/", asked="look")
    assert len(refused.value.message) < 1000


def test_an_address_of_keys_is_in_no_error(raw: Raw) -> None:
    """The address that keys are fetched from may have a login, or a token, in it. Mutation: it is
    where the error happened."""
    for status in ("200 OK", "400 Bad"):
        raw.gives(b'{"Code": "NoKey"}', status)
        uri = raw.address.replace("//", "//me:hunter2@") + "/keys?token=hunter3"
        with pytest.raises(NotLoggedIn) as refused:
            KeyFromUri(uri).key()
        assert "hunter" not in f"{refused.value} {refused.value.where}"


@pytest.mark.parametrize("variables", [
    {"http_proxy": "http://me:hunter2@proxy:port"}, {"http_proxy": "http://me:hunter2@[x"},
])  # fmt: skip
def test_a_proxy_that_is_none_is_said_without_its_login(
    raw: Raw, variables: dict[str, str]
) -> None:
    """Mutation: the library's error has all of it."""
    client = HttpClient(HttpAddress(raw.address), environment=variables)
    with pytest.raises(PermanentBackendError, match="proxy") as refused:
        client.ask("GET", "/", asked="look")
    assert "hunter" not in whole(refused.value)
