"""Who asks Azure, and what its errors mean."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from dispatcher.http_services import azure_tokens as module
from dispatcher.http_services.azure import codes_in, error_of_azure
from dispatcher.http_services.azure_tokens import default_credentials, token_request
from dispatcher.http_services.errors import (
    AlreadyThere,
    Busy,
    Invalid,
    NotAllowed,
    NotLoggedIn,
    NotThere,
    OverQuota,
    Unreachable,
)

ARM = "https://management.azure.com"


class Login:
    """A server that gives tokens: that of the login service, or of a machine.

    Attributes:
        asked: paths, queries with the fields of a form, and headers.
        answer: status and document of the next ones; ``access_token`` is numbered.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self.answer: tuple[int, dict[str, Any]] = (200, {"expires_in": 3600})
        login = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:
                """Be silent."""

            def do_POST(self) -> None:
                self.serve()

            def do_GET(self) -> None:
                self.serve()

            def serve(self) -> None:
                form = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                split = urlsplit(self.path)
                fields = parse_qs(f"{split.query}&{form}".strip("&"))
                given = {key: values[-1] for key, values in fields.items()}
                login.asked.append((split.path, given, dict(self.headers.items())))
                status, document = login.answer
                if status == 200:
                    document = {"access_token": f"token-{len(login.asked)}", **document}
                content = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def login() -> Iterator[Login]:
    made = Login()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


@pytest.fixture
def principal(login: Login) -> dict[str, str]:
    """The variables of a service principal."""
    return {
        "AZURE_TENANT_ID": "tenant/7",
        "AZURE_CLIENT_ID": "client",
        "AZURE_CLIENT_SECRET": "s3cret-of-a-principal",
        "AZURE_AUTHORITY_HOST": f"{login.address}/",
    }


def test_a_service_principal_gets_a_token_that_is_kept_until_it_ends(
    login: Login, principal: dict[str, str]
) -> None:
    """Mutations: a token for each request; one that has expired is used on."""
    now = [1000.0]
    credentials = default_credentials(ARM, environment=principal, clock=lambda: now[0])
    assert credentials.proof().authorization == "Bearer token-1"
    now[0] += 3500.0
    assert credentials.proof().authorization == "Bearer token-1"
    now[0] += 90.0
    assert credentials.proof().authorization == "Bearer token-2"
    assert credentials.refused()
    assert credentials.proof().authorization == "Bearer token-3", "what is refused is had anew"
    path, form, _ = login.asked[0]
    assert path == "/tenant%2F7/oauth2/v2.0/token"
    assert form == {
        "grant_type": "client_credentials",
        "client_id": "client",
        "client_secret": "s3cret-of-a-principal",
        "scope": f"{ARM}/.default",
    }


def test_a_workload_shows_the_token_of_its_file(
    login: Login, principal: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "assertion"
    file.write_text("eyJ.s3cret\n")
    del principal["AZURE_CLIENT_SECRET"]
    principal["AZURE_FEDERATED_TOKEN_FILE"] = str(file)
    assert default_credentials(ARM, environment=principal).proof().authorization
    assert login.asked[0][1]["client_assertion"] == "eyJ.s3cret"
    file.unlink()
    with pytest.raises(NotLoggedIn, match="AZURE_FEDERATED_TOKEN_FILE cannot be read"):
        token_request(ARM, principal)


Where = Callable[[str], dict[str, str]]

MACHINES: dict[str, tuple[Where, str, str, str]] = {
    "a service's": (
        lambda at: {"IDENTITY_ENDPOINT": f"{at}/own", "IDENTITY_HEADER": "h3ader-s3cret"},
        "/own", "2019-08-01", "X-IDENTITY-HEADER",
    ),
    "a compute instance's": (
        lambda at: {"MSI_ENDPOINT": f"{at}/msi/token", "MSI_SECRET": "h3ader-s3cret"},
        "/msi/token", "2017-09-01", "Secret",
    ),
    "a machine's": (
        lambda at: {}, "/metadata/identity/oauth2/token", "2018-02-01", "Metadata",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", MACHINES)
def test_a_machine_of_azure_has_an_identity_of_its_own(
    what: str, login: Login, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: a proxy is asked who this machine is."""
    where, path, version, header = MACHINES[what]
    mark = tmp_path / "tag"
    mark.write_text("7783-7084-3265-9085-8269-3286-77\n")
    monkeypatch.setattr(module, "MACHINE_MARK", mark)
    monkeypatch.setattr(module, "MACHINE_ENDPOINT", login.address)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    login.answer = (200, {"expires_on": "99999999999"})
    credentials = default_credentials(ARM, environment=where(login.address))
    assert credentials.proof().authorization == "Bearer token-1"
    asked, query, headers = login.asked[0]
    assert (asked, query) == (path, {"resource": f"{ARM}/", "api-version": version})
    assert headers[header] == ("true" if what == "a machine's" else "h3ader-s3cret")


def test_nobody_is_asked_where_nothing_says_who_we_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: half a minute until the address of a machine's identity is given up."""
    monkeypatch.setattr(module, "MACHINE_MARK", tmp_path / "none")
    with pytest.raises(NotLoggedIn, match="nothing says who we are") as refused:
        default_credentials(ARM, environment={}).proof()
    assert "AZURE_CLIENT_SECRET" in refused.value.hint
    assert "az account get-access-token" in refused.value.hint


def test_half_of_a_principal_is_said(principal: dict[str, str]) -> None:
    del principal["AZURE_TENANT_ID"]
    with pytest.raises(NotLoggedIn, match="AZURE_TENANT_ID is missing"):
        token_request(ARM, principal)


def test_a_secret_goes_by_https_alone(principal: dict[str, str]) -> None:
    principal["AZURE_AUTHORITY_HOST"] = "http://login.lab"
    with pytest.raises(NotLoggedIn, match="unencrypted"):
        token_request(ARM, principal)
    principal["AZURE_AUTHORITY_HOST"] = "login.lab"
    assert token_request(ARM, principal).server == "https://login.lab"


def test_a_secret_that_is_wrong_is_said_without_it(login: Login, principal: dict[str, str]) -> None:
    """Mutation: the secret in an error, which is logged."""
    text = "AADSTS7000215: Invalid client secret s3cret-of-a-principal. Trace ID: 1 2"
    login.answer = (401, {"error": "invalid_client", "error_description": text})
    credentials = default_credentials(ARM, environment=principal)
    with pytest.raises(NotLoggedIn) as refused:
        credentials.proof()
    assert refused.value.message == (
        "cannot fetch a token: AADSTS7000215: Invalid client secret ***."
    )
    login.answer = (200, {"access_token": ""})
    with pytest.raises(Unreachable, match="the answer has none"):
        credentials.proof()


def error(status: int, code: str, text: str = "it is so", **more: Any) -> Any:
    fields = {"code": code, "message": text, **more}
    return error_of_azure(status, {"error": fields}, asked="do it", where="x")


@pytest.mark.parametrize("status, code, kind", [
    (400, "UserError", Invalid), (400, "QuotaExceeded", OverQuota),
    (401, "ExpiredAuthenticationToken", NotLoggedIn), (403, "AuthorizationFailed", NotAllowed),
    (403, "QuotaExceeded", OverQuota), (404, "ResourceNotFound", NotThere),
    (409, "Conflict", AlreadyThere), (429, "TooManyRequests", Busy), (503, "ServiceError", Busy),
])  # fmt: skip
def test_what_an_answer_means(status: int, code: str, kind: type[Exception]) -> None:
    found = error(status, code)
    assert type(found) is kind
    assert found.message == "cannot do it: it is so"


def test_details_are_said_once() -> None:
    details = [{"message": "a is wrong"}, {"message": "it is so"}, {"message": "a is wrong"}, 7]
    found = error(400, "UserError", details=details)
    assert found.message == "cannot do it: it is so; a is wrong"
    assert "role" in error(403, "AuthorizationFailed").hint
    assert type(error_of_azure(502, "no json", asked="a", where="x")) is Busy


def test_codes_of_what_caused_an_error() -> None:
    inner = {"code": "B", "innerError": {"code": "C", "innerError": None}}
    assert list(codes_in({"code": "A", "innerError": inner})) == ["A", "B", "C"]
    assert list(codes_in(None)) == []
