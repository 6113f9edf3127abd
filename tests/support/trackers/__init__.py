"""Real trackers that judge what sinks have written, and other packages that some tests need, each
in an environment of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.failures import ENABLES
from tests.support.processes import wait_until

CACHE = Path("/var/cache/bequeath-tests")
VERSIONS = {
    "tensorboard": "2.21.0",
    "wandb": "0.31.0",
    "mlflow": "3.17.2",
    "nni": "3.0",
    "jupyter": "7.4.0",
    "frames": "3.1.1",
    "raytune": "2.60.0",
    "synetune": "0.16.0",
}
HERE = Path(__file__).parent

#: What ``make enable`` brings; the others take minutes, or most of a gigabyte.
ENABLED = {"tensorboard", "jupyter", "frames"}

#: Seconds until a server answers on a busy machine: one took 71.
START_S = 480.0


def python_of(tracker: str) -> Path:
    """The Python of a tracker's environment; skips the test without one."""
    python = CACHE / f"{tracker}-{VERSIONS[tracker]}" / "bin" / "python"
    if not python.exists():
        command = f"sudo tests/system/enable_trackers.sh {tracker}"
        how = ENABLES if tracker in ENABLED else f"on demand: {command}"
        pytest.skip(f"needs {tracker} in an environment of its own: {how}")
    return python


def borrow(packages: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets this process import what is in an environment, behind its own packages, for one test."""
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folder = python_of(packages).parents[1] / "lib" / python / "site-packages"
    if not folder.is_dir():
        pytest.skip(f"{folder.parents[2]} is of another Python than {python}")
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])


def read_by(tracker: str, *arguments: str) -> Any:
    """What the tracker's own reader makes of files, by the script beside this file."""
    script = HERE / f"{tracker}_reads.py"
    done = subprocess.run(
        [python_of(tracker), "-W", "ignore", script, *arguments],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def free_port() -> int:
    """A port of loopback that nobody has just now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class MlflowServer:
    """A real server on loopback, on SQLite."""

    def __init__(self, folder: Path, port: int) -> None:
        self.uri = f"http://127.0.0.1:{port}"
        self._port = port
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; returns when it answers."""
        python = python_of("mlflow")
        environ = {
            **os.environ,
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "PYTHONWARNINGS": "ignore",
        }
        log = (self._folder / "server.log").open("ab")
        command = [python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--workers", "1"]
        command += ["--port", str(self._port)]
        command += ["--backend-store-uri", f"sqlite:///{self._folder}/mlflow.db"]
        command += ["--artifacts-destination", str(self._folder / "artifacts")]
        with log:
            self._process = subprocess.Popen(
                command, cwd=self._folder, env=environ, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        wait_until(self._answers, "the MLflow server answers", START_S)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "server.log").read_text()
        try:
            with urllib.request.urlopen(f"{self.uri}/health", timeout=30):
                return True
        except OSError:
            return False

    def stop(self) -> None:
        """End it with all its processes, which are a session of their own."""
        if self._process is not None:
            os.killpg(self._process.pid, 9)
            self._process.wait()
            self._process = None

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Ask it, as a stranger does."""
        request = urllib.request.Request(
            f"{self.uri}/api/2.0/mlflow/{path}",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            found: dict[str, Any] = json.loads(answer.read())
        return found

    def runs(self, name: str) -> list[dict[str, Any]]:
        """The runs of an experiment there, by their names."""
        quoted = urllib.request.quote(name)  # type: ignore[attr-defined]
        with urllib.request.urlopen(
            f"{self.uri}/api/2.0/mlflow/experiments/get-by-name?experiment_name={quoted}"
        ) as answer:
            ident = json.loads(answer.read())["experiment"]["experiment_id"]
        found = self.post("runs/search", {"experiment_ids": [ident], "max_results": 1000})
        return sorted(found.get("runs", []), key=lambda run: run["info"]["run_name"])

    def history(self, run_id: str, key: str) -> list[dict[str, Any]]:
        """All values of a metric that it holds, in their order."""
        with urllib.request.urlopen(
            f"{self.uri}/api/2.0/mlflow/metrics/get-history?run_id={run_id}&metric_key={key}"
        ) as answer:
            found: list[dict[str, Any]] = json.loads(answer.read()).get("metrics", [])
        return found


@contextmanager
def mlflow_server(folder: Path) -> Iterator[MlflowServer]:
    """A server that runs."""
    python_of("mlflow")
    folder.mkdir()
    server = MlflowServer(folder, free_port())
    server.start()
    try:
        yield server
    finally:
        server.stop()
