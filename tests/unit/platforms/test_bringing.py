"""Code, runtime and wheels lie once below a shared folder, and agents begin with them."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from dispatcher.errors import PermanentBackendError
from dispatcher.platforms import bringing
from dispatcher.platforms.archives import Archives, pack_all
from dispatcher.platforms.bringing import SharedFolder
from dispatcher.wheelhouse import HostPython, Wheel, WheelCache, WheelPlan
from tests.support.processes import wait_until
from trial_runtime import begin
from trial_runtime.agent.config import AgentConfig, TrialSpec, encode_config
from trial_runtime.endpoint import Endpoint


def config_in(folder: Path) -> AgentConfig:
    return AgentConfig(
        worker="slurm",
        slots=1,
        head=Endpoint(f"ipc://{folder}/nobody.sock"),
        epoch=1,
        run_folder="",
        experiment_folder=str(folder / "home"),
        trial=TrialSpec("/nowhere/code", command="true"),
        weights_root=str(folder / "weights"),
        ticket="a ticket",
        head_grace_s=0.5,
    )


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text("print(1)\n")
    return folder


@pytest.fixture
def archives(tmp_path: Path, code: Path) -> Archives:
    return pack_all(code, tmp_path / "packed", excluded=(), most_files=100, most_bytes=1 << 20)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o755)
    return folder


def files_of(shared: Path) -> dict[str, int]:
    inside = shared / "bequeath" / bringing.FOLDER
    return {
        str(path.relative_to(inside)): path.stat().st_ino
        for path in inside.rglob("*")
        if path.is_file()
    }


def test_it_lies_there_once_for_each_version(
    shared: Path, archives: Archives, tmp_path: Path
) -> None:
    config = SharedFolder(shared, lambda: archives).bring(config_in(tmp_path))
    before = files_of(shared)
    assert SharedFolder(shared, lambda: archives).bring(config_in(tmp_path)) == config
    assert files_of(shared) == before
    names = {f"archives/{each.digest}.tar" for each in (archives.runtime, archives.code)}
    assert names == {name for name in before if name.startswith("archives/")}


def test_nobody_else_reads_or_writes_it(shared: Path, archives: Archives, tmp_path: Path) -> None:
    SharedFolder(shared, lambda: archives).bring(config_in(tmp_path))
    inside = shared / "bequeath" / bringing.FOLDER
    modes = {stat.S_IMODE(path.stat().st_mode) for path in [inside, *inside.rglob("*")]}
    assert modes == {0o700, 0o600}


def test_an_agent_begins_there_by_real_processes(
    shared: Path, archives: Archives, tmp_path: Path
) -> None:
    """The real runtime, unpacked; no head is there, so the agent leaves after its grace."""
    brought = SharedFolder(shared, lambda: archives)
    config = brought.bring(config_in(tmp_path))
    path = tmp_path / "config"
    path.write_bytes(encode_config(config))
    ran = subprocess.run(
        [sys.executable, brought.begin, str(path)],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        cwd="/",
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    assert (Path(config.trial.code_directory) / "train.py").read_text() == "print(1)\n"
    assert (Path(config.runtime) / "trial_runtime/agent/__main__.py").is_file()
    assert (Path(config.runtime) / "trial_runtime/agent/__pycache__").is_dir()  # that very one ran
    assert (tmp_path / "home/logs").is_dir()
    assert not path.exists()  # an agent removes it as it leaves


def test_the_next_version_lies_beside_it(
    shared: Path, archives: Archives, code: Path, tmp_path: Path
) -> None:
    first = SharedFolder(shared, lambda: archives).bring(config_in(tmp_path))
    (code / "train.py").write_text("print(2)\n")
    changed = pack_all(code, tmp_path / "packed", excluded=(), most_files=9, most_bytes=1 << 20)
    second = SharedFolder(shared, lambda: changed).bring(config_in(tmp_path))
    assert first.runtime == second.runtime
    assert first.trial.code_directory != second.trial.code_directory


@pytest.mark.parametrize("harm", ["damaged", "removed", "link", "all"])
def test_what_somebody_has_spoiled_is_laid_down_anew(
    shared: Path, archives: Archives, tmp_path: Path, harm: str
) -> None:
    inside = shared / "bequeath" / bringing.FOLDER
    brought = SharedFolder(shared, lambda: archives)
    brought.bring(config_in(tmp_path))
    path = inside / "archives" / f"{archives.code.digest}.tar"
    content = path.read_bytes()
    if harm == "damaged":
        path.write_bytes(content[:-1] + b"x")
        brought = SharedFolder(shared, lambda: archives)  # the next head
    elif harm == "link":
        path.unlink()
        path.symlink_to(archives.code.path)
        brought = SharedFolder(shared, lambda: archives)
    elif harm == "removed":
        path.unlink()
    else:
        subprocess.run(["rm", "-r", str(inside)], check=True)
    brought.bring(config_in(tmp_path))
    assert path.read_bytes() == content
    assert not path.is_symlink()
    assert Path(brought.begin).read_bytes() == Path(begin.__file__).read_bytes()


def test_a_folder_that_others_can_change(shared: Path, archives: Archives, tmp_path: Path) -> None:
    shared.chmod(0o777)
    with pytest.raises(PermanentBackendError, match=r"others can change it.*mode 777") as refused:
        SharedFolder(shared, lambda: archives).bring(config_in(tmp_path))
    assert refused.value.hint == "name a 'sharedFolder' of your own"
    assert not files_of(shared)


def test_a_folder_that_cannot_be_made(shared: Path, archives: Archives, tmp_path: Path) -> None:
    (shared / "bequeath").write_text("")
    with pytest.raises(PermanentBackendError, match="cannot bring code to allocations"):
        SharedFolder(shared, lambda: archives).bring(config_in(tmp_path))


# -- wheels --------------------------------------------------------------------------------------


def a_wheel(module: str, folder: Path) -> Wheel:
    path = folder / f"{module}-9.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{module}/__init__.py", "__version__ = '99.0'\n")
    return Wheel(path.name, hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WheelCache:
    """A cache that has a small stand-in for each module, and is never without one that fits."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    known = {module: a_wheel(module, folder) for module in begin.NEEDED}

    def plan(host: HostPython, troubles: dict[str, str], versions: dict[str, str]) -> WheelPlan:
        return WheelPlan(last={x: known[x] for x in begin.NEEDED if troubles[x]})

    def fetch(wheels: Sequence[Wheel], host: HostPython, folder: Path) -> None:
        raise AssertionError("all of them are there")

    monkeypatch.setattr(bringing, "plan", plan)
    return WheelCache(folder, fetch=fetch)


def test_a_python_without_modules_gets_wheels(
    shared: Path, archives: Archives, tmp_path: Path, wheels: WheelCache
) -> None:
    """By real processes: the stand-ins are found, and the agent ends by them."""
    python = tmp_path / "venv/bin/python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", python.parents[1]], check=True)
    archives = Archives(archives.runtime, archives.code, wheels)
    brought = SharedFolder(shared, lambda: archives)
    config = brought.bring(config_in(tmp_path))
    path = tmp_path / "config"
    path.write_bytes(encode_config(config))
    process = subprocess.Popen(
        [str(python), brought.begin, str(path)],
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"]},
    )

    def ended() -> bool:
        brought.look()
        return process.poll() is not None

    wait_until(ended, "the agent has ended", 60)
    _, err = process.communicate()
    assert "waits for the head to bring msgspec" in err
    # An agent by then: the stand-in for msgspec has nothing in it.
    assert "trial_runtime" in err.splitlines()[-2] or "msgspec" in err.splitlines()[-1]
    trees = list((shared / "bequeath" / bringing.FOLDER / "modules").glob("*/*"))
    assert len(trees) == len(begin.NEEDED)


QUESTION: dict[str, Any] = {
    "python": {
        "implementation": "pypy",
        "tag": "pypy39",
        "cpu": "x86_64",
        "libc": "glibc",
        "libc_version": [2, 31],
    },
    "version": [3, 9, 1],
    "executable": "/usr/bin/pypy",
    "missing": {"msgspec": "ModuleNotFoundError: No module named 'msgspec'"},
    "versions": {},
}


def answer_to(
    shared: Path, archives: Archives, tmp_path: Path, content: bytes, name: str = "wheels-1.json"
) -> Any:
    brought = SharedFolder(shared, lambda: archives)
    brought.bring(config_in(tmp_path))
    path = shared / "bequeath" / bringing.FOLDER / "asks" / name
    path.write_bytes(content)
    brought.look()
    wait_until(lambda: not brought.is_answering, "questions are answered")
    return path.read_bytes()


def test_why_there_is_no_wheel_is_said(shared: Path, archives: Archives, tmp_path: Path) -> None:
    content = answer_to(shared, archives, tmp_path, json.dumps({"question": QUESTION}).encode())
    problem = json.loads(content)["answer"]["problem"]
    assert "/usr/bin/pypy cannot import msgspec" in problem
    assert "install there: msgspec" in problem


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"question": 1}',
        b'{"question": {"python": {}}}',
        b'{"x":' + b"[" * 9000,
        json.dumps({"question": QUESTION, "x": "y" * bringing.MOST_BYTES}).encode(),
    ],
)
def test_what_is_no_question_is_left_alone(
    shared: Path, archives: Archives, tmp_path: Path, content: bytes
) -> None:
    assert answer_to(shared, archives, tmp_path, content) == content


def test_links_and_pipes_are_no_questions(shared: Path, archives: Archives, tmp_path: Path) -> None:
    brought = SharedFolder(shared, lambda: archives)
    brought.bring(config_in(tmp_path))
    asks = shared / "bequeath" / bringing.FOLDER / "asks"
    secret = tmp_path / "secret"
    secret.write_text(json.dumps({"question": QUESTION}))
    (asks / "wheels-1.json").symlink_to(secret)
    os.mkfifo(asks / "wheels-2.json")
    brought.look()
    wait_until(lambda: not brought.is_answering, "nothing is answered")
    assert json.loads(secret.read_text()) == {"question": QUESTION}


def test_an_older_agent_reads_the_configuration(tmp_path: Path) -> None:
    """A field more is passed over, and none is written where nothing is brought."""
    config = config_in(tmp_path)
    assert b"brought" not in encode_config(config)
    assert replace(config, brought=None) == msgspec.json.decode(
        encode_config(config), type=AgentConfig
    )
