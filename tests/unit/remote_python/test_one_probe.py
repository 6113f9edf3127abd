"""One probe: ``hosts check`` shows a problem exactly where an agent could not be started."""

from __future__ import annotations

import hashlib
import itertools
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dispatcher.findings import Severity
from dispatcher.platforms.ssh.provisioning import upload_modules
from dispatcher.remote_python.bundle import OLDEST
from dispatcher.remote_python.errors import HostUnfit
from dispatcher.remote_python.findings import HostNeeds, findings_of
from dispatcher.remote_python.probed import Probed, PythonFacts, problem_with
from dispatcher.remote_python.runner import RemotePython
from dispatcher.wheelhouse import MODULES, HostPython, Wheel, WheelCache
from dispatcher.wheelhouse.pip import PipFailed
from tests.unit.remote_python.answers import fit_machine

ABSENT = "ModuleNotFoundError: No module named 'it'"
BROKEN = "ImportError: libzmq.so.5: cannot open shared object file"

PYTHONS = [
    {},
    {"version": (3, 8, 10)},
    {"version": (3, 9, 2)},
    {"version": (3, 12, 0), "python": PythonFacts("pypy", "pypy312", "x86_64", "glibc", (2, 36))},
    {"python": PythonFacts("cpython", "cpython-311", "riscv64", "glibc", (2, 36))},
    {"python": PythonFacts("cpython", "cpython-311", "", "", (0, 0), gpus=True)},
]
FOLDERS = [
    {},
    {"folder_trouble": "/tmp/w belongs to another user (uid 7)"},
    {"folder_trouble": "/data/w cannot be made: no permission to write in /data"},
]
MISSING = [
    {},
    {"msgspec": ABSENT},
    {"zmq": BROKEN},
    {"filelock": ABSENT},
    {"filelock": BROKEN, "numpy": ABSENT},
    {"pynvml": ABSENT},
    dict.fromkeys(MODULES, ABSENT),
]


def answer(python: dict[str, Any], folder: dict[str, Any], missing: dict[str, str]) -> Probed:
    there = dict.fromkeys(MODULES.keys() - missing.keys(), "90.0")
    modules = {"missing": dict.fromkeys(there, "") | missing, "versions": there}
    return fit_machine(**python, **folder, **modules)


ANSWERS = [answer(*each) for each in itertools.product(PYTHONS, FOLDERS, MISSING)]
ANSWERS += [fit_machine(versions=dict.fromkeys(MODULES, "90.0") | {"zmq": "17.1"})]


def refuses(probed: Probed, cache: WheelCache) -> bool:
    """Whether an agent's start does; what could be sent there arrives, and serves."""

    class There:
        def run(self, *_: Any, **__: Any) -> Any:
            pytest.fail("it is asked no more")

        def started(self, *_: Any) -> Any: ...

    if problem_with(probed, "python3", OLDEST) is not None:
        return True
    python = RemotePython(There(), lambda *rest: list(rest), "far")
    try:
        upload_modules(python, "~/w", cache, probed)
    except HostUnfit:
        return True
    except pytest.fail.Exception:
        return False
    return False


class Index:
    """What pip gets: nothing, all, or what trials need."""

    def __init__(self, folder: Path, has: Sequence[str]) -> None:
        folder.mkdir()
        self.folder = folder
        self.has = has
        self.files: dict[str, bytes] = {}

    def fetch(self, wanted: Sequence[Wheel], _: HostPython, into: Path) -> None:
        if not {wheel.project for wheel in wanted} <= set(self.has):
            raise PipFailed("no way out")
        for wheel in wanted:
            (into / wheel.file).write_bytes((self.folder / wheel.file).read_bytes())

    def wheels(self) -> tuple[Wheel, ...]:
        found = []
        for module, project in MODULES.items():
            path = self.folder / f"{project}-90.0-cp311-cp311-manylinux_2_17_x86_64.whl"
            with zipfile.ZipFile(path, "w") as file:
                file.writestr(f"{module}/__init__.py", "")
            found.append(Wheel(path.name, hashlib.sha256(path.read_bytes()).hexdigest()))
        return tuple(found)


@pytest.mark.parametrize("reached", ["all", "nothing", "needed"])
def test_the_start_refuses_what_hosts_check_calls_a_problem_and_no_more(
    reached: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: a rule is dropped from the findings, or from what the start goes by."""
    has = {
        "all": [*MODULES.values()],
        "nothing": [],
        "needed": [x for x in MODULES.values() if x not in ("filelock", "nvidia_ml_py")],
    }
    index = Index(tmp_path / "index", has[reached])
    wheels = index.wheels()
    monkeypatch.setattr("dispatcher.wheelhouse.wheels.known_wheels", lambda: wheels)
    cache = WheelCache(tmp_path / "wheels", fetch=index.fetch)
    needs = HostNeeds(wheels=cache)
    outcomes = set()
    for probed in ANSWERS:
        found = findings_of(probed, "python3", needs)
        problems = {one.topic for one in found if one.severity is Severity.PROBLEM}
        assert problems <= {"python", "disk", "modules"}
        refused = refuses(probed, cache)
        assert refused == bool(problems), probed
        outcomes.add(refused)
    assert outcomes == {True, False}


def test_a_full_disk_is_a_problem_that_may_pass() -> None:
    """The start of an agent waits for room there, and does not give the machine up."""
    (one,) = (
        x
        for x in findings_of(fit_machine(free=1 << 20), "python3", HostNeeds())
        if x.topic == "disk"
    )
    assert (one.severity, one.text[:8]) == (Severity.PROBLEM, "no room:")
    assert problem_with(fit_machine(free=1 << 20), "python3", OLDEST) is None
