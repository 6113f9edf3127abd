"""A real control plane (1.20.2, built by ``rig/kube-bins`` from Debian's own source package) with
nodes whose containers are processes of this machine (``rig/process-kubelet``).

Their root is an overlay of this machine's, so that each image has this machine's Python; what a pod
and this machine both see lies in a ``hostPath``.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.support.failures import ENABLES
from tests.support.processes import wait_until

BINARIES = Path("/var/cache/bequeath-tests/kubernetes/bin")
NEEDED = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")

#: The namespace of the trials.
SPACE = "default"

_RIG = Path(__file__).parent / "rig"


def why_not() -> str:
    """Why there can be no such cluster here; empty if there can."""
    if os.geteuid():
        return "needs root, for containers"
    if not all((BINARIES / each).exists() for each in NEEDED) or not shutil.which("openssl"):
        return f"needs a control plane of Kubernetes, which is built once: {ENABLES}"
    tried = subprocess.run(
        ["unshare", "--mount", "--uts", "--ipc", "true"], capture_output=True, text=True, timeout=60
    )
    return f"may make no namespaces: {tried.stderr.strip()}" if tried.returncode else ""


class RealCluster:
    """A cluster that is up; see :func:`real_cluster`.

    Attributes:
        folder: of its files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._rig_folder = folder / "rig"
        self._nodes: subprocess.Popen[str] | None = None
        self._environment = {
            **os.environ,
            "KUBE_RIG_DIR": str(self._rig_folder),
            "PROCESS_KUBELET_DIR": str(folder / "kubelet"),
        }

    # -- up and down -----------------------------------------------------------------------------

    def up(self, nodes: Sequence[str], cpus: int) -> None:
        """Start all of it; returns when its nodes are ready."""
        etcd = ["--etcd", str(BINARIES / "etcd")]
        self.rig("up", "--bin", str(BINARIES), *etcd)
        self._start_nodes(nodes, cpus)

    def _start_nodes(self, nodes: Sequence[str], cpus: int) -> None:
        words = ["--rig", str(self._rig_folder), "--nodes", ",".join(nodes), "--cpus", str(cpus)]
        with (self.folder / "nodes.log").open("ab") as log:
            self._nodes = subprocess.Popen(
                [sys.executable, str(_RIG / "process-kubelet"), "run", *words],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        wait_until(lambda: self._ready() >= set(nodes), "its nodes are ready")

    def _ready(self) -> set[str]:
        with contextlib.suppress(OSError):
            return {
                each["metadata"]["name"]
                for each in self.admin("GET", "/api/v1/nodes")["items"]
                for condition in each.get("status", {}).get("conditions", [])
                if (condition["type"], condition["status"]) == ("Ready", "True")
            }
        return set()

    def down(self) -> None:
        """End all of it: pods first, then what looks after them."""
        with contextlib.suppress(OSError, AssertionError):
            self.delete_all()
        if self._nodes is not None:
            self._nodes.kill()
            self._nodes.wait()
        self.rig("down")

    def delete_all(self) -> None:
        """Delete all Jobs and pods, and wait until nothing of them runs."""
        now = {"gracePeriodSeconds": 1, "propagationPolicy": "Background"}
        for plural in ("jobs", "pods"):
            self.admin("DELETE", _path(plural), now)
        wait_until(lambda: not self.all("pods") and not self.containers(), "no pod is left", 60)

    # -- what a test may do ----------------------------------------------------------------------

    def rig(self, *words: str) -> str:
        """Have the control plane do something: see ``kube-rig``."""
        ran = subprocess.run(
            [sys.executable, str(_RIG / "kube-rig"), *words],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout.strip()

    def kubelet(self, *words: str) -> str:
        """Have the nodes do something: see ``process-kubelet``."""
        ran = subprocess.run(
            [sys.executable, str(_RIG / "process-kubelet"), *words],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout.strip()

    def kubeconfig(self, user: str = "admin") -> str:
        """The path of a kubeconfig of one who may do all, or of ``alice``, who may do nothing."""
        return self.rig("kubeconfig", user)

    def containers(self) -> list[str]:
        """What runs: ``NODE NAMESPACE/POD PID``."""
        return [line for line in self.kubelet("ps").splitlines() if len(line.split()) > 2]

    def admin(self, verb: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """Ask the API server as one who may do all; the answer. Raises ``OSError``."""
        rig = json.loads((self._rig_folder / "rig.json").read_text())
        tls = ssl.create_default_context(cafile=str(self._rig_folder / "pki/api.crt"))
        request = urllib.request.Request(
            f"https://127.0.0.1:{rig['ports']['api']}{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {rig['tokens']['admin'][0]}", "Content-Type": kind},
            method=verb,
        )
        with urllib.request.urlopen(request, context=tls, timeout=30) as answer:
            return json.load(answer)

    def all(self, plural: str) -> list[dict[str, Any]]:
        """All objects of a kind."""
        items: list[dict[str, Any]] = self.admin("GET", _path(plural))["items"]
        return items

    def running(self) -> list[dict[str, Any]]:
        """The pods that run, and are to go on."""
        return [
            each
            for each in self.all("pods")
            if each.get("status", {}).get("phase") == "Running"
            and "deletionTimestamp" not in each["metadata"]
        ]

    def create(self, plural: str, body: dict[str, Any]) -> Any:
        """Create an object."""
        return self.admin("POST", _path(plural), body)

    def drain(self, pod: str) -> None:
        """Have a pod evicted by the API, as a drain does."""
        body = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": pod}}
        self.admin("POST", f"{_path('pods')}/{pod}/eviction", body)

    def fill(self, name: str, cpus: float) -> None:
        """Take room on the nodes by a pod of somebody else's."""
        container = {
            "name": "c",
            "image": "i",
            "command": ["sleep", "600"],
            "resources": {"requests": {"cpu": str(cpus)}},
        }
        spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        self.create("pods", body)
        wait_until(lambda: self._has_node(name), f"{name} has room")

    def _has_node(self, name: str) -> bool:
        pod = self.admin("GET", f"{_path('pods')}/{name}")
        return bool(pod["spec"].get("nodeName"))

    def remove(self, plural: str, name: str) -> None:
        """Delete an object."""
        self.admin("DELETE", f"{_path(plural)}/{name}", {"gracePeriodSeconds": 0})

    def apply(self, body: dict[str, Any], *, dry_run: bool = False) -> None:
        """Create an object of any kind, or have the server judge it alone."""
        query = "?dryRun=All" if dry_run else ""
        self.admin("POST", f"{_path_of(body)}{query}", body)

    def unapply(self, body: dict[str, Any]) -> None:
        """Delete an object, if it is there."""
        with contextlib.suppress(OSError):
            options = {"propagationPolicy": "Foreground"}
            self.admin("DELETE", f"{_path_of(body)}/{body['metadata']['name']}", options)


def _path_of(body: dict[str, Any]) -> str:
    space = "" if body["kind"] == "PersistentVolume" else f"/namespaces/{SPACE}"
    root = "api" if body["apiVersion"] == "v1" else "apis"
    return f"/{root}/{body['apiVersion']}{space}/{body['kind'].lower()}s"


def _path(plural: str) -> str:
    group = {
        "jobs": "apis/batch/v1",
        "roles": "apis/rbac.authorization.k8s.io/v1",
        "rolebindings": "apis/rbac.authorization.k8s.io/v1",
    }.get(plural, "api/v1")
    return f"/{group}/namespaces/{SPACE}/{plural}"


@contextlib.contextmanager
def real_cluster(
    folder: Path, *, nodes: Sequence[str] = ("n1",), cpus: int = 8
) -> Iterator[RealCluster]:
    """A cluster for a while.

    Args:
        folder: for its files, on a file system of its own: what is below ``/`` is the root of all
            pods.
        nodes: their names: n1 to n8.
        cpus: of each.
    """
    folder.mkdir(parents=True)
    made = RealCluster(folder)
    try:
        made.up(nodes, cpus)
        yield made
    finally:
        made.down()
        shutil.rmtree(folder, ignore_errors=True)
