"""A real Ray cluster of a few small nodes, in the network that this process is in.

Ray listens at the machine's own addresses and finds clusters by them, so that whoever uses this is
in a network namespace of its own (:func:`alone`), where there is nothing but the loopback. Nodes
are killed with all that runs there; somebody else may hold places. Needs root, and the environment
with Ray that ``make enable`` makes.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from tests.support.failures import ENABLES
from tests.support.processes import wait_until

VERSION = "2.60.0"
PYTHON = Path(f"/var/cache/bequeath-tests/ray-{VERSION}/bin/python")
ADDRESS = "127.0.0.1:6379"
CLIENTS = "ray://127.0.0.1:10001"

HEAD = "head"
_STORE_BYTES = 80 << 20  # the least that Ray takes

_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_raylet_start_wait_time_s": "120",  # on a machine on which much else runs
    "RAY_worker_niceness": "0",  # as whatever it is compared with; Ray's own is 15
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_failure_threshold": "8",
}

#: Holds places until its stdin ends: ``CODE ADDRESS RESOURCE COUNT``.
_HOLD = """
import sys, ray
ray.init(sys.argv[1], log_to_driver=False)
class Guest:
    def here(self):
        return True
Guest = ray.remote(Guest).options(num_cpus=0, resources={sys.argv[2]: 1})
guests = [Guest.remote() for _ in range(int(sys.argv[3]))]
ray.get([guest.here.remote() for guest in guests])
print("held", flush=True)
sys.stdin.read()
"""

#: Prints the nodes' own names, and actors of ours that live, as ``NODE [ACTOR]``.
_LIST = """
import sys, ray
from ray._private import state
ray.init(sys.argv[1], log_to_driver=False)
names = {}
for node in ray.nodes():
    if node["Alive"]:
        own = [r for r in node["Resources"] if r.startswith("own-")] or ["own-head"]
        names[node["NodeID"]] = own[0][4:]
        print(own[0][4:])
for actor in state.actors(actor_state_name="ALIVE").values():
    if actor["Name"]:
        print(names.get(actor["Address"]["NodeID"], "-"), actor["Name"])
"""


#: Prints the number of the node that has a resource.
_ID = """
import sys, ray
ray.init(sys.argv[1], log_to_driver=False)
print(*[n["NodeID"] for n in ray.nodes() if n["Alive"] and sys.argv[2] in n["Resources"]])
"""

#: What ``ray drain-node`` does, for a reason that an autoscaler gives.
_DRAIN = """
import sys, time
from ray._raylet import GcsClient
from ray.core.generated import autoscaler_pb2
reason = autoscaler_pb2.DrainNodeReason.Value("DRAIN_NODE_REASON_PREEMPTION")
at = int((time.time() + float(sys.argv[3])) * 1000)
accepted, why = GcsClient(address=sys.argv[1]).drain_node(sys.argv[2], reason, "spot market", at)
assert accepted, why
"""


#: What an autoscaler reports after each of its turns.
_AUTOSCALER = """
import sys, json
from ray._raylet import GcsClient
from ray.core.generated.autoscaler_pb2 import AutoscalingState
state = AutoscalingState(last_seen_cluster_resource_state_version=1, autoscaler_state_version=1)
for name, amount in json.loads(sys.argv[2]).items():
    if not state.infeasible_resource_requests:
        state.infeasible_resource_requests.add()
    state.infeasible_resource_requests[0].resources_bundle[name] = amount
state.failed_instance_requests.add(ray_node_type_name=sys.argv[3], count=1, reason=sys.argv[4])
GcsClient(address=sys.argv[1]).report_autoscaling_state(state.SerializeToString())
"""


def why_not() -> str:
    """Why there can be no such cluster here; empty if there can."""
    return no_network() if PYTHON.exists() else f"needs Ray {VERSION}: {ENABLES}"


def no_network() -> str:
    """Why there can be no network of its own here; empty if there can."""
    if os.geteuid() != 0:
        return "needs root"
    tried = subprocess.run(["unshare", "-n", "true"], capture_output=True, text=True, check=False)
    return f"may make no namespace: {tried.stderr.strip()}" if tried.returncode else ""


def alone(command: list[str]) -> list[str]:
    """The command, in a network of its own with nothing but the loopback."""
    return ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *command]


class RayCluster:
    """A cluster; a context manager, whose end leaves no process and no file.

    Args:
        folder: of its state; its path is short, since it holds sockets.
        nodes: by name, what each has; beside them there is the one with Ray's head, which has
            nothing.
        python: that of an environment with Ray.
    """

    def __init__(
        self, folder: Path, nodes: dict[str, dict[str, float]], python: Path = PYTHON
    ) -> None:
        self.folder = folder
        self.address = ADDRESS
        self.python = python
        self._resources = nodes
        self._running: dict[str, psutil.Popen] = {}

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True)
        try:
            self.start(HEAD)
            for name in self._resources:
                self.start(name)
            self.wait_for_nodes()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def start(self, name: str, **settings: str) -> None:
        """Start a node; with settings of Ray of its own."""
        command = [str(self.python.parent / "ray"), "start", "--block", "--disable-usage-stats"]
        command += ["--node-ip-address=127.0.0.1", f"--object-store-memory={_STORE_BYTES}"]
        if name == HEAD:
            command += ["--head", "--port=6379", "--num-cpus=0"]
            command += ["--include-dashboard=false", f"--temp-dir={self.folder}"]
        else:
            own = {**self._resources[name], f"own-{name}": 1.0}
            command += [f"--address={ADDRESS}", f"--num-cpus={own.pop('CPU', 0):.0f}"]
            command += [f"--num-gpus={own.pop('GPU', 0):.0f}", "--resources=" + _json(own)]
        begin = len(self._log(name))
        with open(self.folder / f"{name}.log", "ab") as log:
            self._running[name] = psutil.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **_SETTINGS, **settings},
                start_new_session=True,
            )
        # One after another: two that begin at once on one machine may take the same ports.
        runs = lambda: "-- --block" in self._log(name)[begin:]  # noqa: E731
        wait_until(lambda: runs() or self._running[name].poll() is not None, f"{name} runs")
        assert runs(), self._log(name)[begin:]

    def wait_for_nodes(self) -> None:
        """Wait until Ray lists all nodes that run."""
        wait_until(lambda: len(self.nodes()) == len(self._running), "all nodes are there")

    def nodes(self) -> list[str]:
        """The names of nodes that live, by Ray's own account."""
        return [line for line in self.run(_LIST).splitlines() if " " not in line]

    def actors(self) -> dict[str, str]:
        """The names of actors that live, and of their nodes."""
        rows = [line.split() for line in self.run(_LIST).splitlines() if " " in line]
        return {actor: node for node, actor in rows}

    def nodes_with_agents(self) -> list[str]:
        """The names of nodes on which an agent runs, at once: no head waits for us meanwhile."""
        found = []
        for name, first in self._running.items():
            for process in first.children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if "trial_runtime.agent" in " ".join(process.cmdline()):
                        found.append(name)
                        break
        return found

    def run(self, code: str, *arguments: str) -> str:
        """Run code in Ray's Python, with the address as its first argument; its output."""
        ran = subprocess.run(
            [str(self.python), "-c", code, ADDRESS, *arguments],
            env={**os.environ, **_SETTINGS},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    @contextmanager
    def held(self, resource: str, count: int) -> Iterator[None]:
        """Within it somebody else has so many places with one of a resource."""
        process = subprocess.Popen(
            [str(self.python), "-c", _HOLD, ADDRESS, resource, str(count)],
            env={**os.environ, **_SETTINGS},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"held\n"
            yield
        finally:
            process.stdin.close()
            process.wait(60)
            process.stdout.close()

    def crash(self, name: str) -> None:
        """Take a node's power away: all that runs there ends at once."""
        first = self._running.pop(name)
        doomed = [first, *first.children(recursive=True)]
        for process in doomed:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()  # so that nobody sees the others end
        for process in doomed:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        first.wait(60)

    def drain(self, name: str, within_s: float) -> None:
        """Tell Ray that a node will be taken away so soon, as a spot market does."""
        self.run(_DRAIN, self.run(_ID, f"own-{name}").strip(), str(within_s))

    def preempt(self, name: str) -> None:
        """Take a node away as a spot market does: Ray is told first."""
        self.drain(name, 1.0)
        self.crash(name)

    def autoscaler_says(self, never: dict[str, float], failed: tuple[str, str]) -> None:
        """Report what an autoscaler reports.

        Args:
            never: a request that no kind of node can fulfill.
            failed: a kind of node that could not be started, and why.
        """
        self.run(_AUTOSCALER, json.dumps(never), *failed)

    def _log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def _end(self) -> None:
        for name in list(self._running):
            self.crash(name)
        shutil.rmtree(self.folder, ignore_errors=True)


def _json(amounts: dict[str, float]) -> str:
    return "{" + ", ".join(f'"{name}": {amount}' for name, amount in amounts.items()) + "}"
