"""`bequeath web` as it is typed: where it listens, what it refuses to do, who may ask it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dispatcher.cli.exit_codes import ExitCode
from tests.integration.web.conftest import EXPERIMENT
from tests.support.processes import wait_until
from tests.support.web_server import WebServer

ONE = f"/experiments/{EXPERIMENT}"


def test_a_second_one_on_the_same_port_says_so(server: WebServer) -> None:
    text = server.command("web", "--port", str(server.port), code=ExitCode.USER)
    assert f"a page is served on port {server.port} already" in text
    assert str(server.process.pid) in text
    assert "bequeath web --link" in text
    assert "Traceback" not in text


def test_another_programs_port_is_named(server: WebServer) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        text = server.command("web", "--port", str(port), code=ExitCode.USER)
    assert f"another program has port {port}" in text


@pytest.mark.parametrize(
    "words,message",
    [
        (("--host", "0.0.0.0"), "nothing is encrypted"),
        (("--host", "::"), "nothing is encrypted"),
        (("--tls-cert", "x"), "go together"),
        (("--tls-cert", "/none", "--tls-key", "/none"), "cannot be used"),
        (("--prefix", "no/slash"), "is no prefix"),
        (("--allow-host", "a b"), "is no host name"),
        (("--revoke", "nobody"), "there is no share 'nobody'"),
        (("--share", "a b"), "is no name of a share"),
        (("--share", "x", "--days", "0"), "a share ends after"),
        (("--share", "x", "--days", "nan"), "a share ends after"),
        (("--link", "--port", "1"), "no page is served on port 1"),
    ],
)
def test_what_is_not_safe_or_cannot_be_is_refused(
    server: WebServer, words: tuple[str, ...], message: str
) -> None:
    text = (
        server.command("web", "--port", "0", *words, code=ExitCode.USER)
        if ("--port" not in words)
        else server.command("web", *words, code=ExitCode.USER)
    )
    assert message in text
    assert "Traceback" not in text


def test_it_serves_a_unix_socket_for_its_user_alone(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "s"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()  # as one that was killed leaves it
    server = WebServer(home, tmp_path / "state", "--socket", str(path))
    try:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        connection = http.client.HTTPConnection("localhost", timeout=60)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(path))
        head = {"Authorization": f"Bearer {server.token}"}
        connection.request("GET", f"/api/v1{ONE}", headers=head)
        assert json.loads(connection.getresponse().read())["experiment"]["id"] == EXPERIMENT
        connection.close()
        assert "login?once=" in server.command("web", "--link", "--socket", str(path))
        again = server.command("web", "--socket", str(path), code=ExitCode.USER)
        assert "already" in again
    finally:
        assert server.end() == 0
    assert not path.exists()


def test_a_prefix_is_in_links_cookies_and_the_page(home: Path, tmp_path: Path) -> None:
    server = WebServer(home, tmp_path / "state", "--prefix", "/proxy/x")
    try:
        assert "/proxy/x/login?once=" in server.link
        cookie = server.raw("GET", server.link.partition(str(server.port))[2])
        assert "Path=/proxy/x" in cookie.headers["Set-Cookie"]
        head = {"Cookie": cookie.headers["Set-Cookie"].partition(";")[0]}
        for path in ("/proxy/x/", "/"):  # a proxy may take the prefix off, or leave it
            page = server.raw("GET", path, head)
            assert page.status == 200
            assert page.body.count(b"<base ") == 1
            assert b'<base href="/proxy/x/">' in page.body
        assert server.raw("GET", f"/proxy/x/api/v1{ONE}", head).status == 200
        assert server.raw("GET", f"/proxy/xapi/v1{ONE}", head).status == 404
    finally:
        server.end()


def test_it_speaks_tls(home: Path, tmp_path: Path) -> None:
    import ssl

    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
         "-keyout", key, "-out", cert, "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    words = ("--host", "0.0.0.0", "--tls-cert", str(cert), "--tls-key", str(key))
    server = WebServer(home, tmp_path / "state", *words, "--allow-host", "127.0.0.1")
    try:
        assert server.link.startswith("https://")
        context = ssl.create_default_context(cafile=str(cert))
        line = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60, context=context)
        line.request("GET", f"/login?{server.link.partition('?')[2]}")
        answer = line.getresponse()
        answer.read()
        cookie = answer.headers["Set-Cookie"]
        assert cookie.startswith(f"__Host-bequeath-{server.port}=")
        assert "Secure" in cookie
        assert answer.headers["Strict-Transport-Security"]
        line.close()
        assert server.command("web", "--link").startswith("https://")
    finally:
        server.end()


def test_behind_a_proxy_cookies_are_secure_where_it_encrypts(home: Path, tmp_path: Path) -> None:
    name = "pages.example"
    server = WebServer(home, tmp_path / "state", "--behind-proxy", name)
    try:
        for scheme, secure in (("https", True), ("http", False)):
            address, _, link = server.command("web", "--link").partition(name)
            assert address == "https://"  # as the browser reaches it, whatever lies behind
            head = {"Host": name, "X-Forwarded-Proto": scheme}
            answer = server.raw("GET", link, head)
            assert ("Secure" in answer.headers["Set-Cookie"]) is secure
    finally:
        server.end()


def test_nobody_else_is_believed_about_the_scheme(server: WebServer) -> None:
    link = server.command("web", "--link").partition(str(server.port))[2]
    answer = server.raw("GET", link, {"X-Forwarded-Proto": "https"})
    assert "Secure" not in answer.headers["Set-Cookie"]


def test_shares_are_listed(server: WebServer) -> None:
    server.command("web", "--share", "listed", "--days", "2", "--with-logs")
    shares = json.loads(server.command("web", "--shares", "--json"))["shares"]
    (mine,) = [one for one in shares if one["share"] == "listed"]
    assert mine["logs"]
    assert not mine["over"]
    assert mine["expires_at"] - mine["created_at"] == pytest.approx(2 * 86_400)
    assert "listed  ends in 2.0 days  with logs" in server.command("web", "--shares")
    taken = server.command("web", "--share", "listed", code=ExitCode.USER)
    assert "already" in taken
    server.command("web", "--revoke", "listed")
    assert "listed" not in server.command("web", "--shares")


def test_files_that_others_may_read_let_nobody_in(home: Path, tmp_path: Path) -> None:
    server = WebServer(home, tmp_path / "state")
    server.end()
    token = tmp_path / "state" / "bequeath" / "web" / "token"
    token.chmod(0o644)
    text = server.command("web", "--port", "0", code=ExitCode.USER)
    assert "others may read or change this file" in text
    assert str(token) in text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_ends_when_it_is_asked_to(home: Path, tmp_path: Path, number: int) -> None:
    server = WebServer(home, tmp_path / "state")
    assert server.get("/experiments")["experiments"]
    known = tmp_path / "state" / "bequeath" / "web" / "servers" / f"{server.port}.json"
    assert known.exists()
    server.process.send_signal(number)
    wait_until(lambda: server.process.poll() is not None, "it ends", 30)
    assert server.process.returncode == 0
    assert not known.exists()
    server.end()


def test_one_that_was_killed_leaves_nothing_in_the_way(home: Path, tmp_path: Path) -> None:
    server = WebServer(home, tmp_path / "state")
    server.process.kill()
    server.end()
    assert "no page is served" in server.command("web", "--link", code=ExitCode.USER)
    again = WebServer(home, tmp_path / "state", "--port", str(server.port))
    assert again.end() == 0


def test_the_description_fits_openapi(server: WebServer) -> None:
    from jsonschema import Draft202012Validator

    schema = Path(__file__).parents[2] / "unit" / "operations" / "openapi-3.1.schema.json"
    described = server.get("/openapi.json")
    Draft202012Validator(json.loads(schema.read_text())).validate(described)
    for path, methods in described["paths"].items():
        for method, one in methods.items():
            assert one["x-scope"] in ("read", "logs", "change"), (path, method)
    assert "get" in described["paths"]["/api/v1/experiments/{experiment}/events"]
    names = [one["operationId"] for each in described["paths"].values() for one in each.values()]
    assert len(names) == len(set(names))


#: What would make a route a way to run a program here, to write anywhere, or to ask other servers.
FORBIDDEN = {
    "command", "script", "shell", "module", "code", "environment", "folder", "directory", "path",
    "file", "destination", "target", "host", "url", "uri",
}  # fmt: skip


def names_taken(described: dict[str, Any]) -> dict[str, set[str]]:
    """By route, the names of all that a request may give it."""
    schemas = described["components"]["schemas"]
    found: dict[str, set[str]] = {}
    for path, methods in described["paths"].items():
        for method, one in methods.items():
            names = {each["name"] for each in one.get("parameters", ())}
            for content in one.get("requestBody", {}).get("content", {}).values():
                body = content["schema"]
                body = schemas[body["$ref"].rpartition("/")[2]] if "$ref" in body else body
                names |= set(body.get("properties", ()))
            found[f"{method.upper()} {path}"] = names
    return found


def test_no_route_takes_a_command_a_path_or_an_address(server: WebServer) -> None:
    """But the file of a trial, which is looked for among its own. Mutation: a route that writes a
    backup where the request says."""
    taken = names_taken(server.get("/openapi.json"))
    assert "parameters" in taken["POST /api/v1/experiments/{experiment}/trials"]
    assert "key" in taken["PATCH /api/v1/experiments/{experiment}"]
    places = {
        route: {name for name in names if FORBIDDEN & set(name.casefold().split("_"))}
        for route, names in taken.items()
    }
    assert {route: names for route, names in places.items() if names} == {
        "GET /api/v1/experiments/{experiment}/trials/{trial}/files/{path}": {"path"}
    }


def test_help_loads_no_server() -> None:
    """Mutation: an import of the server at the top of a command."""
    program = (
        "import sys\nfrom dispatcher.cli.main import main\nsys.argv = ['bequeath', *sys.argv[1:]]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('LOADED', *sorted({n.partition('.')[0] for n in sys.modules}))"
    )
    import sys

    for words in (["--help"], ["web", "--help"], ["experiment", "list"]):
        done = subprocess.run(
            [sys.executable, "-c", program, *words],
            capture_output=True, text=True, timeout=120, env={**os.environ, "COLUMNS": "100"},
        )  # fmt: skip
        loaded = done.stdout.rpartition("LOADED")[2].split()
        assert loaded, done
        assert not {"starlette", "uvicorn", "h11", "anyio"} & set(loaded), words
