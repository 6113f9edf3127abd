"""Real proxies before the page, set up as docs/web.md says: nginx, and jupyter-server-proxy.

Each is a process of the test on loopback, and no service.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.failures import ENABLES
from tests.support.processes import wait_until
from tests.support.trackers import python_of

_GUIDE = Path(__file__).parents[2] / "docs" / "web.md"
_NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

#: What the guide calls the machine, the page's port, and Jupyter's.
NAME, PAGE, JUPYTER = "gpu1.example.org", "8077", "8888"

_CONFIG = """\
daemon off;
master_process off;
pid {folder}/pid;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port} ssl;
    server_name {name};
    ssl_certificate {folder}/cert.pem;
    ssl_certificate_key {folder}/key.pem;
    {location}
  }}
}}
"""

_START_S = 120.0


def block(language: str, holding: str) -> str:
    """The first block of the guide in a language that holds a text."""
    blocks = re.findall(rf"```{language}\n(.*?)```", _GUIDE.read_text(), re.DOTALL)
    return next(str(one) for one in blocks if holding in one)


def words_of(holding: str, **ports: int) -> list[str]:
    """The words behind ``bequeath web`` of the guide's command that holds a text.

    Args:
        holding: the text.
        ports: the test's own ports, in place of those that the guide names: ``page``, ``jupyter``,
            and ``proxy``, which the guide leaves out as it is the usual one.
    """
    lines = block("bash", holding).splitlines()
    line = next(one for one in lines if holding in one).partition("#")[0]
    told = {PAGE: ports.get("page"), JUPYTER: ports.get("jupyter")}
    for before, now in told.items():
        if now is not None:
            line = line.replace(before, str(now))
    if "proxy" in ports:
        line = line.replace(NAME, f"{NAME}:{ports['proxy']}")
    words = shlex.split(line)
    assert words[:2] == ["bequeath", "web"], line
    return words[2:]


def demand_nginx() -> None:
    """Leave the test out where there is no nginx, with the command that brings it."""
    if _NGINX is None:
        pytest.skip(f"needs nginx: {ENABLES}")


@contextmanager
def nginx(folder: Path, port: int, page: int, location: str = "") -> Iterator[Path]:
    """An nginx that speaks TLS for :data:`NAME`, until the block is left.

    Args:
        folder: for its files; it is made.
        port: where it listens.
        page: the port of the page behind it.
        location: its words about the page; those of the guide if there are none.

    Yields:
        the certificate, which nobody but the test believes.
    """
    demand_nginx()
    folder.mkdir()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
         "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-subj", f"/CN={NAME}",
         "-addext", f"subjectAltName=DNS:{NAME}"],
        check=True, capture_output=True,
    )  # fmt: skip
    location = (location or block("nginx", "location")).replace(PAGE, str(page))
    text = _CONFIG.format(folder=folder, port=port, name=NAME, location=location)
    (folder / "nginx.conf").write_text(text)
    command = [_NGINX, "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "error.log"]
    with _running(command, folder, port):
        yield folder / "cert.pem"


@contextmanager
def jupyter(folder: Path, port: int, token: str) -> Iterator[None]:
    """A Jupyter server with jupyter-server-proxy, until the block is left.

    Args:
        folder: for its files; it is made.
        port: where it listens.
        token: which signs in to it.
    """
    python = python_of("jupyter")
    folder.mkdir()
    environment = {
        **os.environ,
        "HOME": str(folder),
        **{
            f"JUPYTER_{name}_DIR": str(folder / name.lower())
            for name in ("CONFIG", "DATA", "RUNTIME")
        },
    }
    command = [python, "-m", "jupyter_server", "--no-browser", "--allow-root"]
    command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}"]
    command += [f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}"]
    with _running(command, folder, port, environment):
        yield


@contextmanager
def _running(
    command: list[object], folder: Path, port: int, environment: dict[str, str] | None = None
) -> Iterator[None]:
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [str(word) for word in command], env=environment, stdin=subprocess.DEVNULL,
            stdout=said, stderr=said,
        )  # fmt: skip

    def listens() -> bool:
        assert process.poll() is None, (folder / "said").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_until(listens, f"{command[0]} listens", _START_S)
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
