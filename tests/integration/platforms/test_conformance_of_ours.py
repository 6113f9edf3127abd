"""The conformance suite as other people run it: over this machine, hosts with a real sshd, both
together, and the package under ``examples``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.packages import lay_down
from tests.support.ssh_hosts import SshHosts, our_python, ssh_hosts, why_not

pytestmark = pytest.mark.timeout(900)

ROOT = Path(__file__).parents[3]
LIMIT_S = 800

#: Where the host has what is ``share`` here.
POINT = "/mnt/weights"


def command(service: Any, base: Path, *words: str) -> list[str]:
    """What somebody types who tries a service."""
    file = base / "service.yml"
    file.write_text(json.dumps(service))  # JSON is YAML
    suite = "dispatcher.conformance"
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", f"{suite}.plugin", "--pyargs", suite]
    temporary = f"--basetemp={base / 'tmp'}"
    return [sys.executable, "-m", "pytest", *options, temporary, "--service", str(file), *words]


def environment(*more: Path) -> dict[str, str]:
    """Ours, with this checkout and what is installed beside it."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, *more)))}


@pytest.mark.skipif(not why_not(), reason="it is tried together with hosts")
def test_this_machine(tmp_path: Path) -> None:
    passes({"platform": "local"}, tmp_path)


@pytest.mark.slow
def test_the_package_under_examples(tmp_path: Path) -> None:
    """Installed beside the house, as pip does it, without a network."""
    there = tmp_path / "installed"
    install(ROOT / "examples/backend_prefix", there, tmp_path)
    place = {"name": "gentle", "prefix": ["nice", "-n", "1"], "python": sys.executable}
    passes({"platform": "prefix", "places": [place]}, tmp_path, there)


@pytest.mark.slow
def test_the_queue_under_examples(tmp_path: Path) -> None:
    """Its own tests, as its author runs them: those for allocations need fixtures."""
    there = tmp_path / "installed"
    install(ROOT / "examples/backend_queue", there, tmp_path)
    shutil.copytree(ROOT / "examples/backend_queue/tests", tmp_path / "tests")
    suite = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests"]
    succeeds([*suite, f"--basetemp={tmp_path / 'tmp'}"], tmp_path, there)


@pytest.mark.slow
def test_a_platform_of_0_1_0(tmp_path: Path) -> None:
    """The package under ``examples`` as it was then, which has never heard of checks, hosts and
    drivers. It is kept as it is, whatever becomes of the example."""
    there = tmp_path / "installed"
    entry = "prefix = bequeath_prefix:PREFIX\n"
    lay_down(there, "old", f"[bequeath.backends]\n{entry}")
    shutil.copytree(ROOT / "tests/support/prefix_0_1/bequeath_prefix", there / "bequeath_prefix")
    place = {"name": "old", "prefix": ["nice", "-n", "1"], "python": sys.executable}
    passes({"platform": "prefix", "places": [place]}, tmp_path, there)


def install(package: Path, there: Path, base: Path) -> None:
    """Install a package into a folder, as pip does it, without a network."""
    words = ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(there)]
    shutil.copytree(package, base / "source")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", *words, str(base / "source")],
        check=True,
        capture_output=True,
        timeout=LIMIT_S,
    )


def passes(service: Any, base: Path, *installed: Path) -> None:
    """The suite passes, and no part of it is left out."""
    succeeds(command(service, base), base, *installed)


def succeeds(suite: list[str], base: Path, *installed: Path) -> None:
    """These tests pass, and none is left out."""
    ran = subprocess.run(
        suite,
        cwd=base,
        env=environment(*installed),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " skipped" not in ran.stdout, ran.stdout


@pytest.fixture
def host(tmp_path: Path) -> Iterator[tuple[SshHosts, Path]]:
    if reason := why_not():
        pytest.skip(reason)
    share = tmp_path / "share"
    share.mkdir()
    with ssh_hosts(tmp_path / "hosts", 1, binds=our_python(), shares={POINT: share}) as hosts:
        yield hosts, share


@pytest.mark.needs("sshd")
@pytest.mark.slow
def test_hosts_and_this_machine_together(host: tuple[SshHosts, Path], tmp_path: Path) -> None:
    """Each worker is tried, so that this is the host alone and both beside each other."""
    hosts, share = host
    (one,) = hosts
    machine = {
        "host": one.address,
        "user": "root",
        "keyFile": str(one.key),
        "knownHosts": str(one.known_hosts),
        "python": sys.executable,
        "weightsRoot": POINT,
    }
    both = [{"platform": "local"}, {"platform": "ssh", "machineList": [machine]}]
    with (tmp_path / "said").open("wb") as said:
        suite = hosts.inside(
            command(both, tmp_path, "--weights-root", str(share)),
            cwd=tmp_path,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
        try:
            code = suite.wait(LIMIT_S)
        finally:
            if suite.poll() is None:
                suite.kill()
                suite.wait(60)
    text = (tmp_path / "said").read_text(errors="replace")
    assert code == 0, text[-6000:]
    assert " skipped" not in text, text
