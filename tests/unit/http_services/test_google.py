"""Who asks Google, and what its errors mean."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import PermanentBackendError
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
)
from dispatcher.http_services.google import DefaultCredentials, error_of_google
from dispatcher.http_services.signing import HttpRequest

REQUEST = HttpRequest("GET", "https://x.googleapis.com/v1/a", {}, b"")


def error(status: int, word: str, *details: dict[str, Any], retry_after: str | None = None) -> Any:
    fields = {"code": status, "message": "it is so", "status": word, "details": list(details)}
    return error_of_google(
        status, {"error": fields}, asked="do it", where="x", retry_after=retry_after
    )


@pytest.mark.parametrize("status, word, kind", [
    (400, "INVALID_ARGUMENT", Invalid), (400, "FAILED_PRECONDITION", Invalid),
    (401, "UNAUTHENTICATED", NotLoggedIn), (403, "PERMISSION_DENIED", NotAllowed),
    (404, "NOT_FOUND", NotThere), (409, "ALREADY_EXISTS", AlreadyThere), (409, "ABORTED", Conflict),
    (429, "RESOURCE_EXHAUSTED", OverQuota), (500, "INTERNAL", Busy), (503, "UNAVAILABLE", Busy),
])  # fmt: skip
def test_what_an_answer_means(status: int, word: str, kind: type[Exception]) -> None:
    found = error(status, word)
    assert type(found) is kind
    assert found.message == "cannot do it: it is so"


def test_a_rate_is_no_quota() -> None:
    """Mutation: a service that is asked too often counts as one without room."""
    assert type(error(429, "RESOURCE_EXHAUSTED", {"reason": "RATE_LIMIT_EXCEEDED"})) is Busy
    assert type(error(429, "RESOURCE_EXHAUSTED", retry_after="7")) is Busy
    assert error(429, "RESOURCE_EXHAUSTED", retry_after="7").retry_after_s == 7
    assert type(error_of_google(429, None, asked="a", where="x")) is Busy


def test_details_are_said() -> None:
    """Mutation: "Request contains an invalid argument." and no more."""
    violation = {"field": "job_spec", "description": "Cannot find field."}
    found = error(400, "INVALID_ARGUMENT", {"@type": "x", "fieldViolations": [violation]})
    assert found.message == "cannot do it: it is so; job_spec: Cannot find field."
    disabled = error(403, "PERMISSION_DENIED", {"reason": "SERVICE_DISABLED"})
    assert "gcloud services enable" in disabled.hint
    for odd in ({"error": "a text"}, {"error": {"details": ["x"]}}, ["x"], "x"):
        assert type(error_of_google(404, odd, asked="a", where="x")) is NotThere


def test_without_the_library_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.auth", None)
    with pytest.raises(PermanentBackendError, match="need google-auth") as missing:
        DefaultCredentials().headers(REQUEST)
    assert missing.value.hint == "pip install 'bequeath[google]', or name a token by 'token'"


class Tokens:
    """A server that gives tokens for the assertions of a service account."""

    def __init__(self) -> None:
        self.given = 0
        self.status = 200
        tokens = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:
                """Be silent."""

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                tokens.given += 1
                answer: dict[str, Any] = {"access_token": f"t{tokens.given}", "expires_in": 3600}
                if tokens.status != 200:
                    answer = {"error": "invalid_grant", "error_description": "Account s3cret-7"}
                content = json.dumps(answer).encode()
                self.send_response(tokens.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/token"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


@pytest.fixture
def tokens() -> Iterator[Tokens]:
    pytest.importorskip("google.auth")
    made = Tokens()
    yield made
    made.close()


@pytest.fixture
def key_file(tokens: Tokens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The key of a service account, which the machine's environment names."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = tmp_path / "key.json"
    path.write_text(json.dumps({
        "type": "service_account", "project_id": "lab-project-7", "private_key_id": "1",
        "private_key": pem.decode(), "client_email": "nas@lab.iam.gserviceaccount.com",
        "token_uri": tokens.address,
    }))  # fmt: skip
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "lab-project-7")
    return path


def test_a_token_is_fetched_once_and_again_when_it_is_refused(
    key_file: Path, tokens: Tokens
) -> None:
    """By Google's own library, of a server of ours. Mutations: a token for each request; one that
    is refused is shown for ever."""
    signer = DefaultCredentials()
    assert not signer.refused(), "nobody has shown one"
    first = signer.headers(REQUEST)
    assert {key.lower(): value for key, value in first.items()} == {"authorization": "Bearer t1"}
    signer.headers(REQUEST)
    assert tokens.given == 1
    assert signer.refused()
    assert "Bearer t2" in signer.headers(REQUEST).values()
    assert tokens.given == 2


def test_a_key_that_is_refused_is_said_without_what_the_server_said(
    key_file: Path, tokens: Tokens
) -> None:
    tokens.status = 400
    with pytest.raises(NotLoggedIn, match="cannot be used: invalid_grant") as refused:
        DefaultCredentials().headers(REQUEST)
    assert "application default credentials" in refused.value.where
    assert "gcloud" in refused.value.hint


def test_a_key_that_is_none_and_a_server_that_is_away(key_file: Path, tokens: Tokens) -> None:
    """Mutation: a network that is down for a minute loses workers for good."""
    text = key_file.read_text().replace(tokens.address, "http://127.0.0.1:9/token")
    key_file.write_text(text)
    with pytest.raises(Unreachable, match="no token can be fetched"):
        DefaultCredentials().headers(REQUEST)
    for content in ("no json", "{}", json.dumps({"type": "service_account"})):
        key_file.write_text(content)
        with pytest.raises(NotLoggedIn, match="cannot be used"):
            DefaultCredentials().headers(REQUEST)
    key_file.unlink()
    with pytest.raises(NotLoggedIn, match=r"key.json was not found"):
        DefaultCredentials().headers(REQUEST)
