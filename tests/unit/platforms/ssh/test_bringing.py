"""A machine whose Python has nothing installed: what our code imports is brought there."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from dispatcher.errors import BackendError
from dispatcher.findings import Severity
from dispatcher.platforms.archives import Archives, pack_all
from dispatcher.platforms.ssh.machine import Machine
from dispatcher.platforms.ssh.provisioning import Fitted, fit
from dispatcher.remote_python.errors import HostUnfit
from dispatcher.remote_python.findings import HostNeeds, findings_of
from dispatcher.remote_python.unpacking import unpack
from dispatcher.ssh import SshTarget
from dispatcher.wheelhouse import MODULES, HostPython, Wheel, WheelCache, wheels
from dispatcher.wheelhouse.pip import PipFailed
from tests.support.remote_python import python_here
from tests.unit.platforms.ssh.test_fitting import Bare
from tests.unit.remote_python.answers import fit_machine
from trial_runtime import carried

TAG = sys.implementation.cache_tag


class Index:
    """Wheels of our own making, and pip that has them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reached = True
        self.asked: list[str] = []
        folder.mkdir()
        self.wheels = tuple(self._make(*item) for item in MODULES.items())

    def _make(self, module: str, project: str) -> Wheel:
        path = self.folder / f"{project}-90.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(f"{module}/__init__.py", f"__version__ = '90.0'\nsaid = '{module}'\n")
        return Wheel(path.name, hashlib.sha256(path.read_bytes()).hexdigest())

    def fetch(self, wanted: Sequence[Wheel], _host: HostPython, into: Path) -> None:
        self.asked += [wheel.project for wheel in wanted]
        if not self.reached:
            raise PipFailed("no way out")
        for wheel in wanted:
            (into / wheel.file).write_bytes((self.folder / wheel.file).read_bytes())


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    one = Index(tmp_path / "index")
    monkeypatch.setattr(wheels, "known_wheels", lambda: one.wheels)
    return one


@pytest.fixture
def bare(tmp_path: Path) -> Bare:
    one = Bare(tmp_path)
    python = one.behind_prolog / "its-python"
    python.write_text(f'#!{one.programs / "bash"}\nexec "{sys.executable}" -S "$@"\n')
    return one


def house(tmp_path: Path, index: Index) -> WheelCache:
    return WheelCache(tmp_path / "wheels", fetch=index.fetch)


@pytest.fixture
def archives(tmp_path: Path, index: Index) -> Archives:
    (tmp_path / "code").mkdir()
    packed = pack_all(
        tmp_path / "code", tmp_path / "packed", excluded=[], most_files=9, most_bytes=999
    )
    return Archives(packed.runtime, packed.code, house(tmp_path, index))


def fitted(bare: Bare, archives: Archives) -> Fitted:
    machine = Machine("bare", lambda: SshTarget("bare"), python="its-python", prolog=bare.prolog)
    return fit(bare, machine, archives)  # type: ignore[arg-type]


def test_what_it_lacks_is_brought_once_and_can_be_imported(
    bare: Bare, archives: Archives, index: Index
) -> None:
    found = fitted(bare, archives)
    assert set(index.asked) == set(MODULES.values()) - {"nvidia_ml_py"}
    assert len(found.modules.last) == 5
    assert not found.modules.first
    program = "import trial_runtime, msgspec, zmq, numpy; print(msgspec.said, zmq.said, numpy.said)"
    ran = subprocess.run(
        [sys.executable, "-S", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": found.runtime, **carried.variables(*found.modules)},
    )
    assert ran.stdout.split() == ["msgspec", "zmq", "numpy"]

    times = {path: os.stat(path).st_ino for path in found.modules.last}
    assert fitted(bare, archives) == found
    assert {path: os.stat(path).st_ino for path in times} == times, "nothing was brought twice"


def test_without_a_way_out_it_says_what_to_put_where(
    bare: Bare, archives: Archives, index: Index
) -> None:
    index.reached = False
    with pytest.raises(HostUnfit) as caught:
        fitted(bare, archives)
    assert "has no msgspec, zmq, blake3, numpy" in caught.value.message
    assert "(no way out)" in caught.value.message
    assert "filelock" not in caught.value.message, "it can do without"
    assert str(archives.wheels.folder) in caught.value.hint
    assert caught.value.hint.endswith("or install there: msgspec pyzmq blake3 numpy")


def test_what_arrives_damaged_is_not_used(bare: Bare, archives: Archives) -> None:
    """Mutation: the machine does not look at the digest."""
    wheel = next(iter((archives.wheels.folder.parent / "index").iterdir()))
    with pytest.raises(BackendError, match="arrived damaged"):
        unpack(python_here(), wheel, "0" * 64, str(bare.home / "it"), verb="unwheel")
    assert os.listdir(bare.home) == []


def test_what_was_begun_long_ago_and_never_ended_goes(
    bare: Bare, archives: Archives, index: Index
) -> None:
    """Mutation: half a wheel lies there for ever, each time that a connection breaks."""
    wheel = next(iter((archives.wheels.folder.parent / "index").iterdir()))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    old, new = bare.home / ".part-old", bare.home / ".part-new"
    for folder in (old, new):
        folder.mkdir()
    os.utime(old, (0, 0))
    assert unpack(python_here(), wheel, digest, str(bare.home / "it"), verb="unwheel")
    assert sorted(os.listdir(bare.home)) == [".part-new", "it"]
    assert (bare.home / "it").stat().st_mode & 0o777 == 0o755


def test_hosts_check_says_what_would_be_brought(index: Index, tmp_path: Path) -> None:
    absent = {"msgspec": "ModuleNotFoundError: No module named 'msgspec'"}
    there = dict.fromkeys(MODULES.keys() - {"msgspec"}, "27.3")
    machine = fit_machine(missing=dict.fromkeys(there, "") | absent, versions=there)
    needs = HostNeeds(wheels=house(tmp_path, index))

    def found() -> tuple[Severity, str, str]:
        (one,) = [x for x in findings_of(machine, "python3", needs) if x.topic == "modules"]
        return one.severity, one.text, one.hint

    verdict, text, _ = found()
    assert verdict is Severity.OK
    assert text.endswith("; brought there: msgspec 90.0")
    index.reached = False
    (tmp_path / "wheels" / "msgspec-90.0-py3-none-any.whl").unlink()
    verdict, text, hint = found()
    assert verdict is Severity.PROBLEM
    assert "(no way out)" in text
    assert str(tmp_path / "wheels") in hint
