"""What begins an agent where nothing of ours is: each way to be unfit, by real processes.

The runtime that is brought is a small stand-in, which says what became of it.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dispatcher.remote_python.on_host.facts import python_facts
from dispatcher.wheelhouse import MODULES, USEFUL
from dispatcher.wheelhouse.wheels import OURS_FIRST
from tests.support.old_python import WHY_NOT, old_python
from tests.support.processes import wait_until
from trial_runtime import begin, carried
from trial_runtime.safe_path import module_arguments

FILE = Path(begin.__file__)

AGENT = """\
import json, os, sys
import trial_runtime
print(json.dumps({
    "argv": sys.argv[1:], "pid": os.getpid(), "runtime": trial_runtime.__file__, "path": sys.path,
    "variables": dict(os.environ),
}))
"""


def tar_of(**files: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name.replace("__slash__", "/"))
            member.size, member.mode = len(text.encode()), 0o600
            tar.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


RUNTIME = tar_of(
    **{"__init__.py": "", "agent__slash____init__.py": "", "agent__slash____main__.py": AGENT}
)
CODE = tar_of(**{"train.py": "print(1)"})


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Place:
    """A machine's folders, and the configuration of an agent there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.archives = folder / "archives"
        self.archives.mkdir(parents=True)
        self.work = folder / "work"
        self.config = folder / "config"
        self.brought: dict[str, Any] = {"archives": str(self.archives), "work": str(self.work)}
        for name, content in (("runtime", RUNTIME), ("code", CODE)):
            (self.archives / f"{digest(content)}.tar").write_bytes(content)
            self.brought[name] = {"digest": digest(content), "nbytes": len(content)}

    def command(self, python: str = sys.executable) -> list[str]:
        self.config.write_text(json.dumps({"worker": "w", "brought": self.brought}))
        return [python, str(FILE), str(self.config)]

    def begin(self, python: str = sys.executable, **more: str) -> tuple[int, str, str]:
        """Exit code, output and complaint."""
        variables = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **more}
        command = self.command(python)
        ran = subprocess.run(
            command, capture_output=True, text=True, env=variables, cwd="/", timeout=60
        )
        return ran.returncode, ran.stdout, ran.stderr

    def trees(self) -> list[str]:
        return sorted(str(x.relative_to(self.work)) for x in self.work.glob("*/*"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def began(place: Place, python: str = sys.executable, **more: str) -> dict[str, Any]:
    code, out, err = place.begin(python, **more)
    assert (code, err) == (0, "")
    answer: dict[str, Any] = json.loads(out)
    return answer


def test_an_agent_begins_with_what_was_brought(place: Place) -> None:
    agent = began(place, PYTHONPATH="/of/the/user")
    runtime = place.work / "runtime" / digest(RUNTIME)
    assert agent["runtime"] == str(runtime / "trial_runtime/__init__.py")
    assert agent["argv"] == [str(place.config)]
    assert agent["variables"]["PYTHONPATH"] == f"{runtime}:/of/the/user"
    assert (place.work / "code" / digest(CODE) / "train.py").read_text() == "print(1)"
    assert str(FILE.parent) not in agent["path"]
    assert "" not in agent["path"]


def test_it_is_the_same_process(place: Place) -> None:
    """Signals and pids of a scheduler are the agent's. Mutation: a child instead."""
    process = subprocess.Popen(place.command(), stdout=subprocess.PIPE)
    out, _ = process.communicate(timeout=60)
    assert json.loads(out)["pid"] == process.pid


def test_what_is_there_is_not_unpacked_again(place: Place) -> None:
    began(place)
    for each in place.archives.iterdir():
        each.unlink()
    began(place)


def test_many_at_once(place: Place) -> None:
    command = place.command()
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(6)
    ]
    assert [each.communicate(timeout=60)[1] for each in started] == [b""] * 6
    assert [each.returncode for each in started] == [0] * 6
    assert place.trees() == [f"code/{digest(CODE)}", f"runtime/{digest(RUNTIME)}"]


def test_parts_of_a_compressed_archive(place: Place) -> None:
    packed = zlib.compress(RUNTIME)
    (place.archives / f"{digest(RUNTIME)}.tar").unlink()
    for number, at in enumerate(range(0, len(packed), 100)):
        (place.archives / f"{digest(RUNTIME)}.{number}").write_bytes(packed[at : at + 100])
    place.brought["runtime"]["parts"] = number + 1
    began(place)


def test_without_anything_brought_it_is_the_agent_alone(place: Place) -> None:
    place.brought = {}
    runtime = place.folder / "own"
    with tarfile.open(fileobj=io.BytesIO(RUNTIME)) as tar:
        tar.extractall(runtime / "trial_runtime", filter="data")
    assert began(place, PYTHONPATH=str(runtime))["argv"] == [str(place.config)]
    assert not place.work.exists()


# -- ways to be unfit ----------------------------------------------------------------------------


def refused(place: Place, code: int, *texts: str, python: str = sys.executable) -> str:
    """One line, an exit code, and nothing half done."""
    ended, out, err = place.begin(python)
    assert (ended, out) == (code, ""), err
    assert err.count("\n") == 1
    assert err.endswith("\n")
    for text in texts:
        assert text in err
    assert not [each for each in place.work.glob("*/*") if each.name.startswith(".")]
    return err


def shorten_waits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **seconds: float) -> None:
    """The same file with shorter limits."""
    text = FILE.read_text()
    old = "LOCK_S, WHEELS_S, LATE_S = 120.0, 120.0, 15.0"
    assert old in text
    waits = {"LOCK_S": 120.0, "WHEELS_S": 120.0, "LATE_S": 15.0, **seconds}
    new = tmp_path / "quick" / "begin.py"
    new.parent.mkdir()
    new.write_text(text.replace(old, "; ".join(f"{k} = {v}" for k, v in waits.items())))
    monkeypatch.setattr("tests.unit.trial_runtime.test_begin.FILE", new)


def test_an_archive_with_another_content(place: Place) -> None:
    path = place.archives / f"{digest(CODE)}.tar"
    path.write_bytes(CODE.replace(b"print(1)", b"print(2)"))
    refused(place, begin.DAMAGED, "the archive of the code is damaged")
    path.write_bytes(CODE)
    began(place)


def test_an_archive_that_is_longer(place: Place) -> None:
    (place.archives / f"{digest(CODE)}.tar").write_bytes(CODE + b"\0" * (4 << 20))
    refused(place, begin.DAMAGED, "the archive of the code is damaged")


def test_an_archive_that_is_none(place: Place) -> None:
    content = b"no tar at all" * 100
    (place.archives / f"{digest(content)}.tar").write_bytes(content)
    place.brought["runtime"] = {"digest": digest(content), "nbytes": len(content)}
    refused(place, begin.DAMAGED, "the archive of the runtime cannot be unpacked")


def test_parts_that_are_torn(place: Place) -> None:
    (place.archives / f"{digest(RUNTIME)}.0").write_bytes(b"\x78\x9cnothing of zlib's")
    place.brought["runtime"]["parts"] = 1
    refused(place, begin.DAMAGED, "the archive of the runtime cannot be unpacked")


def test_an_archive_that_is_not_there(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shorten_waits(monkeypatch, tmp_path, LATE_S=0.2)
    gone = place.archives / f"{digest(CODE)}.tar"
    gone.unlink()
    refused(place, begin.MISSING, "the archive of the code is not here", str(gone))


def test_an_archive_that_is_seen_late(place: Place) -> None:
    late = place.archives / f"{digest(CODE)}.tar"
    late.unlink()
    process = subprocess.Popen(place.command(), stdout=subprocess.PIPE)
    wait_until(lambda: (place.work / "runtime").is_dir(), "the other archive is unpacked")
    late.write_bytes(CODE)
    assert json.loads(process.communicate(timeout=60)[0])["argv"]


def test_a_work_folder_that_others_can_change(place: Place) -> None:
    place.work.mkdir()
    place.work.chmod(0o777)
    refused(place, begin.NO_FOLDER, f"{place.work} can be changed by other users (mode 777)")


def test_a_work_folder_below_one_that_others_can_change(place: Place) -> None:
    place.folder.chmod(0o777)
    refused(place, begin.NO_FOLDER, f"{place.folder} can be changed by other users")
    place.folder.chmod(0o700)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("as_link", [False, True])
def test_a_work_folder_of_somebody_else(place: Place, as_link: bool) -> None:
    other = place.folder / "other" if as_link else place.work
    other.mkdir(mode=0o755)
    os.chown(other, 12345, 12345)
    if as_link:
        place.work.symlink_to(other)
    refused(place, begin.NO_FOLDER, "belongs to another user (uid 12345)")


def test_a_file_in_place_of_the_work_folder(place: Place) -> None:
    place.work.write_text("")
    refused(place, begin.NO_FOLDER, str(place.work), "cannot be used")


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", '{"brought": 1}', '{"brought": {"runtime": {"digest": "../x", "nbytes": 1}}}'],
)
def test_a_configuration_that_is_none(place: Place, content: str) -> None:
    command = place.command()
    place.config.write_text(content)
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == begin.NO_CONFIG
    assert f"{place.config} is no configuration of an agent" in ran.stderr


def test_a_configuration_that_is_not_there(place: Place) -> None:
    command = place.command()
    place.config.unlink()
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == begin.NO_CONFIG
    assert ran.stderr == f"{place.config} cannot be read: No such file or directory\n"


def test_python_3_6_can_read_it() -> None:
    ast.parse(FILE.read_text(), feature_version=(3, 6))


def real(version: str) -> str | None:
    root = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser()
    found = sorted(root.glob(f"versions/{version}.*/bin/python{version}"))
    return str(found[0]) if found else None


@pytest.mark.parametrize("version", ["3.6", "3.7", "3.8"])
def test_a_python_that_is_too_old(place: Place, version: str) -> None:
    python = real(version)
    if python is None:
        pytest.skip(f"no python{version} here")
    refused(place, begin.UNFIT, f"is Python {version}.", "trials need 3.9 or newer", python=python)


# -- modules -------------------------------------------------------------------------------------


def bare(folder: Path) -> str:
    """A Python without any module that is not its own."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return str(folder / "bin/python")


def wheel_of(module: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as wheel:
        wheel.writestr(f"{module}/__init__.py", "__version__ = '99.0'\n")
    return out.getvalue()


def test_a_python_without_modules_and_nobody_to_ask(place: Place, tmp_path: Path) -> None:
    python = bare(tmp_path / "venv")
    packages = "install there, or in the image: msgspec pyzmq blake3 numpy"
    refused(place, begin.UNFIT, f"{python} has no msgspec, zmq", packages, python=python)


def test_wheels_that_the_head_knows_to_be_lacking_are_asked_of_nobody(
    place: Place, tmp_path: Path
) -> None:
    """They lie there in parts, as archives do. Mutation: the head is asked all the same."""
    wheels = []
    for module in begin.NEEDED:
        content = wheel_of(module)
        packed = zlib.compress(content)
        for number, part in enumerate((packed[:50], packed[50:])):
            (place.archives / f"{digest(content)}.{number}").write_bytes(part)
        own = {"module": module, "digest": digest(content), "nbytes": len(content)}
        wheels.append({**own, "first": False, "parts": 2})
    place.brought["wheels"] = wheels
    began(place, bare(tmp_path / "venv"))
    assert len(list(place.work.glob("modules/*/*/msgspec/__init__.py"))) == 1


def answering(place: Place, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> threading.Thread:
    """A head that answers one question, after a torn write."""
    asks = place.folder / "asks"
    asks.mkdir(mode=0o700)
    place.brought["asks"] = str(asks)

    def work() -> None:
        wait_until(lambda: [*asks.glob("wheels-*")], "a question", 30.0)
        (path,) = asks.glob("wheels-*")
        question = json.loads(path.read_text())["question"]
        text = json.dumps({"answer": answer(question)})
        path.write_text(text[:5])
        time.sleep(0.3)
        path.write_text(text)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def lay_wheels(place: Place, modules: list[str], **wrong: Any) -> list[dict[str, Any]]:
    wheels = []
    for module in modules:
        content = wheel_of(module)
        (place.archives / f"{digest(content)}.whl").write_bytes(content)
        each = {"module": module, "digest": digest(content), "nbytes": len(content)}
        wheels.append({**each, "first": False, **wrong})
    return wheels


def test_wheels_are_asked_for_and_brought(place: Place, tmp_path: Path) -> None:
    python = bare(tmp_path / "venv")
    asked: list[dict[str, Any]] = []
    wheels = lay_wheels(place, ["msgspec", "zmq", "blake3", "numpy"])

    def answer(question: dict[str, Any]) -> dict[str, Any]:
        asked.append(question)
        return {"wheels": wheels, "problem": ""}

    head = answering(place, answer)
    code, out, err = place.begin(python)
    head.join()
    assert code == 0
    assert "waits for the head to bring" in err
    folders = [
        str(place.work / "modules" / asked[0]["python"]["tag"] / x["digest"]) for x in wheels
    ]
    assert json.loads(out)["variables"][carried.LAST].split(":") == folders
    facts = {**asked[0]["python"], "libc_version": tuple(asked[0]["python"]["libc_version"])}
    assert facts == {**python_facts(), "libc_version": tuple(python_facts()["libc_version"])}
    assert asked[0]["missing"]["zmq"].startswith("ModuleNotFoundError: ")
    assert not list((place.folder / "asks").iterdir())


def test_no_wheel_fits(place: Place, tmp_path: Path) -> None:
    head = answering(place, lambda question: {"wheels": [], "problem": "none for cp313-musl"})
    code, _, err = place.begin(bare(tmp_path / "venv"))
    head.join()
    assert (code, err.splitlines()[-1]) == (begin.UNFIT, "none for cp313-musl")


def test_a_wheel_with_another_content(place: Place, tmp_path: Path) -> None:
    wheels = lay_wheels(place, ["msgspec"])
    (place.archives / f"{wheels[0]['digest']}.whl").write_bytes(b"x" * wheels[0]["nbytes"])
    head = answering(place, lambda question: {"wheels": wheels})
    code, _, err = place.begin(bare(tmp_path / "venv"))
    head.join()
    assert code == begin.DAMAGED
    assert "the wheel of msgspec is damaged" in err.splitlines()[-1]


def test_a_head_that_does_not_answer(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shorten_waits(monkeypatch, tmp_path, WHEELS_S=0.5)
    (place.folder / "asks").mkdir()
    place.brought["asks"] = str(place.folder / "asks")
    code, _, err = place.begin(bare(tmp_path / "venv"))
    assert code == begin.UNFIT
    assert "the head has not brought msgspec, zmq, blake3, numpy" in err.splitlines()[-1]
    assert not list((place.folder / "asks").iterdir())


def test_it_agrees_with_the_others() -> None:
    """One file that is sent alone says some things again."""
    assert list(module_arguments("trial_runtime.agent", (3, 9))) == ["-c", begin.AGENT]
    assert (carried.LAST, carried.FIRST) == (begin.LAST, begin.FIRST)
    assert {k: v for k, v in MODULES.items() if k not in USEFUL} == {**begin.NEEDED}
    assert set(begin.USEFUL) == set(USEFUL)
    assert begin.OLDEST_MODULES == OURS_FIRST


def test_with_the_oldest_python(place: Place) -> None:
    python = old_python()
    if python is None:
        pytest.skip(WHY_NOT)
    code, _, err = place.begin(python)
    assert code in (0, begin.UNFIT)
    assert code == 0 or "has no" in err
