"""A real S3 server on this machine's loopback: moto's, in a process of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.ports import free_port
from tests.support.processes import wait_until

BUCKET = "weights"


def why_not() -> str:
    """Why no server can be started here; empty if it can."""
    missing = [name for name in ("moto", "flask", "s3fs") if not importlib.util.find_spec(name)]
    return f"needs {', '.join(missing)}: pip install 'bequeath[dev]'" if missing else ""


@dataclass
class S3Server:
    """One server, with a bucket that is called ``weights``."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def options(self, port: int | None = None, **changes: Any) -> dict[str, Any]:
        """Options for fsspec; by another port if something lies in between."""
        return {
            "key": "someone",
            "secret": "env:TEST_S3_SECRET",
            "endpoint_url": f"http://127.0.0.1:{port or self.port}",
            "client_kwargs": {"region_name": "us-east-1"},
            **changes,
        }

    def ask(self, method: str, path: str, data: bytes | None = None) -> int:
        """A plain request; the status."""
        plain = {"Content-Type": "text/plain"}
        request = urllib.request.Request(f"{self.endpoint}{path}", data, plain, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def answers(self) -> bool:
        """Whether it is up."""
        assert self.process.poll() is None, "the server has ended"
        try:
            return self.ask("GET", "/") < 500
        except OSError:
            return False


@contextlib.contextmanager
def running() -> Iterator[S3Server]:
    """A server while the block lasts."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    server = S3Server(port, process)
    try:
        wait_until(server.answers, f"an S3 server on port {port}")
        assert server.ask("PUT", f"/{BUCKET}") == 200
        yield server
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait(60)
