"""The programs that list and read files of attempts, and become a shell there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import PermanentBackendError
from dispatcher.platforms.files import LocalFiles, Whereabouts
from dispatcher.remote_python.on_host import shell as shell_program
from trial_runtime import attempt_folder as files_program


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    above = tmp_path / "e/trials/0/1"
    for name in ("artefacts/plots", "work", "private"):
        (above / name).mkdir(parents=True)
    (above / "stdout").write_text("out")
    (above / "stdout.1").write_text("older")
    (above / "session.json").write_text("secret")
    (above / "private/key").write_text("secret")
    (above / "artefacts/plots/a.png").write_bytes(b"png")
    (above / "work/notes").write_text("notes")
    (tmp_path / "checkpoints/0").mkdir(parents=True)
    (tmp_path / "checkpoints/0/state").write_text("state")
    return above


def whereabouts(folder: Path, **more: Any) -> Whereabouts:
    return Whereabouts(
        "e",
        0,
        1,
        str(folder),
        work=str(folder / "work"),
        checkpoints=str(folder.parents[3] / "checkpoints/0"),
        **more,
    )


@pytest.fixture
def files(folder: Path) -> LocalFiles:
    return LocalFiles(whereabouts(folder))


def names(files: LocalFiles, below: str = "", most: int = 100) -> list[str]:
    return [each.path for each in files.list(below, most=most).entries]


def test_only_what_an_attempt_leaves_is_listed(files: LocalFiles) -> None:
    everything = ["stdout", "stdout.1", "artefacts/plots/a.png", "checkpoints/state", "work/notes"]
    assert names(files) == everything
    assert names(files, "artefacts/plots") == ["artefacts/plots/a.png"]
    assert names(files, "stdout") == ["stdout", "stdout.1"]
    for bad in ("..", "/etc", "private", "artefacts/../..", "work/../private", "none"):
        assert names(files, bad) == []


@pytest.mark.parametrize(
    "path",
    [
        "session.json",
        "private/key",
        "../1/stdout",
        "/etc/passwd",
        "artefacts/../session.json",
        "",
        "work",
        "work/",
        "stdout/",
        "stdout.x",
        "stdout\x00",
        "work/./notes",
    ],
)
def test_nothing_else_is_read(files: LocalFiles, path: str) -> None:
    assert files.read(path, 0, 100) is None


def test_parts_of_a_file(files: LocalFiles, folder: Path) -> None:
    first = files.read("work/notes", 1, 3)
    assert first is not None
    assert (first.data, first.size) == (b"ote", 5)
    assert files.read("work/notes", 99, 3) == first._replace(data=b"")
    with (folder / "work/notes").open("a") as file:
        file.write("+")
    grown = files.read("work/notes", 5, 3)
    assert grown is not None
    assert (grown.data, grown.identity) == (b"+", first.identity)
    assert grown.version != first.version
    (folder / "other").write_text("notes+")
    (folder / "other").replace(folder / "work/notes")
    again = files.read("work/notes", 0, 0)
    assert again is not None
    assert again.identity != first.identity


def test_links_and_other_things_are_not_read(files: LocalFiles, folder: Path) -> None:
    (folder / "work/link").symlink_to("/etc/passwd")
    (folder / "work/way").symlink_to("/etc")
    (folder / "artefacts/loop").symlink_to("..")
    os.mkfifo(folder / "work/pipe")
    marked = {each.path: each.link for each in files.list(most=100).entries}
    assert {path for path, link in marked.items() if link} == {
        "work/link",
        "work/way",
        "work/pipe",
        "artefacts/loop",
    }
    assert files.read("work/pipe", 0, 10) is None, "and nobody waits for a writer"
    for path in ("work/link", "work/way/passwd", "artefacts/loop/stdout"):
        with pytest.raises(PermanentBackendError):
            files.read(path, 0, 10)


def test_a_list_is_bounded_in_files_and_in_depth(files: LocalFiles, folder: Path) -> None:
    for number in range(60):
        (folder / f"work/{number:03}").touch()
    found = files.list("work", most=50)
    assert (len(found.entries), found.cut) == (50, True)
    deep = folder / "artefacts"
    for _ in range(90):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "end").touch()
    found = files.list("artefacts", most=50)
    assert found.entries[0].path.endswith("d/d/end")
    assert not found.cut
    for _ in range(500):
        deep = deep / "d"
    deep.mkdir(parents=True)
    assert files.list("artefacts", most=50).cut


def test_what_is_not_there_is_an_empty_list(tmp_path: Path) -> None:
    files = LocalFiles(Whereabouts("e", 0, 1, str(tmp_path / "none")))
    assert files.list(most=10).entries == []
    assert files.read("stdout", 0, 10) is None


def test_a_name_that_is_no_text_travels(files: LocalFiles, folder: Path) -> None:
    (folder / "work" / os.fsdecode(b"\xff\x1b[2J")).write_text("x")
    (odd,) = (each for each in names(files, "work") if each != "work/notes")
    piece = files.read(odd, 0, 10)
    assert piece is not None
    assert piece.data == b"x"
    question = {"ask": "list", "folders": whereabouts(folder).for_files(), "below": "", "most": 9}
    head, body = files_program.answer(json.loads(json.dumps(question)))
    assert head == {}
    assert odd in [each[0] for each in json.loads(body)["files"]]


def told(folder: Path, **more: Any) -> dict[str, Any]:
    return whereabouts(folder, **more).for_shell()


def test_a_shell_has_what_the_process_has_but_not_its_secret(folder: Path) -> None:
    variables = {
        "BEQUEATH_EXPERIMENT": "e",
        "BEQUEATH_SESSION": "/run/x/s0.1.json",
        "BEQUEATH_ATTEMPT": "0.1",
        "BEQUEATH_SECRET_TOKEN": "s",
        "CUDA_VISIBLE_DEVICES": "GPU-7",
        "PATH": os.defpath,
    }
    sleep = [sys.executable, "-c", "print(flush=True); input()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(sleep, env=variables, cwd="/usr", **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == b"\n"
        try:
            found, where = shell_program.surroundings(told(folder, pid=process.pid))
            other = told(folder, pid=process.pid) | {"attempt": 2}
            foreign = told(folder, pid=process.pid) | {"experiment": "f"}
            assert shell_program.running(other) == shell_program.running(foreign) == {}
        finally:
            process.communicate(b"\n")
    assert where == "/usr"
    assert found["CUDA_VISIBLE_DEVICES"] == "GPU-7"
    assert not any("S" in name[8:10] for name in found if name.startswith("BEQUEATH_S"))
    assert "BEQUEATH_ATTEMPT" not in found
    assert "HOME" not in found, "that is ours, not the trial's"


def test_the_environment_is_put_together_where_no_process_runs(folder: Path) -> None:
    runtimes = folder / "runtime"
    for age, name in enumerate(("new", "old")):
        (runtimes / name / "trial_runtime").mkdir(parents=True)
        os.utime(runtimes / name, (1000 - age, 1000 - age))
    (runtimes / "broken").mkdir()
    tag = sys.implementation.cache_tag
    for name in (f"{tag}/wheel", "cpython-30/other"):
        (folder / "modules" / name).mkdir(parents=True)
    found, where = shell_program.surroundings(
        told(
            folder, runtimes=str(runtimes), weights_root="/w", environment=lambda: {"A": "b"}, pid=1
        )
    )
    assert where == str(folder / "work")
    assert (found["A"], found["BEQUEATH_EXPERIMENT"]) == ("b", "e")
    assert found["BEQUEATH_WEIGHTS_ROOT"] == "/w"
    ours = [str(runtimes / "new"), f"{runtimes}/new/trial_runtime/beside"]  # and its bequeath
    assert found["PYTHONPATH"].split(os.pathsep)[-2:] == ours
    assert found["BEQUEATH_MODULES"] == str(folder / f"modules/{tag}/wheel")
    assert os.path.dirname(sys.executable) in found["PATH"].split(os.pathsep)
    assert "BEQUEATH_SESSION" not in found


def test_what_is_left_of_an_attempt_decides_where_a_shell_begins(folder: Path) -> None:
    gone = told(folder) | {"work": str(folder / "none")}
    assert shell_program.surroundings(gone)[1] == str(folder)
    gone["folder"] = gone["work"]
    with pytest.raises(shell_program.FolderGone):
        shell_program.surroundings(gone)
    nothing = LocalFiles(Whereabouts("e", 0, 1, str(folder / "none")))
    with pytest.raises(PermanentBackendError, match="nothing is left of attempt"):
        nothing.shell(["true"], terminal=False)


@pytest.mark.parametrize(
    "command, code",
    [
        (["true"], 0),
        (["sh", "-c", "exit 7"], 7),
        (["no-such-command"], 127),
        (["/etc"], 126),
        (["sh", "-c", "kill -9 $$"], 137),
    ],
)
def test_exit_codes_are_passed_on(files: LocalFiles, command: list[str], code: int) -> None:
    assert files.shell(command, terminal=False) == code
