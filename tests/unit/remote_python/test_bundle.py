"""Code that travels: run by a Python that has nothing of ours, whole or not at all."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dispatcher.remote_python import on_host
from dispatcher.remote_python.bundle import START, Bundle, bundle_of, our_programs

#: Not the interpreter of the tests, where there is another: that one has our packages.
SYSTEM = shutil.which("python3", path="/usr/bin:/bin") or sys.executable


def run(
    folder: Path, stdin: bytes, *arguments: str, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [SYSTEM, *options, *arguments],
        input=stdin,
        capture_output=True,
        cwd=folder,
        timeout=240,
        env={"PATH": os.defpath, "TMPDIR": str(folder), "HOME": str(folder)},
    )


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    """One that says how it was called and what it reads."""
    package = tmp_path / "spoken"
    (package / "deep").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "deep" / "__init__.py").write_text(
        'WORD = "gr\N{LATIN SMALL LETTER U WITH DIAERESIS}n"\n'
    )
    (package / "stays.py").write_text("")
    (package / "__main__.py").write_text(
        "import json, sys\n"
        "from .deep import WORD\n"
        "def main():\n"
        "    print(json.dumps([sys.argv, sys.stdin.buffer.read().decode(), WORD]))\n"
        "    return 7\n"
    )
    return bundle_of(package, without=("stays.py",))


def test_it_gets_its_arguments_and_what_comes_behind_the_code(
    bundle: Bundle, tmp_path: Path
) -> None:
    place = tmp_path / "there"
    place.mkdir()
    (place / "json.py").write_text("raise SystemExit('imported from where it was run')")
    for alone in (True, False):
        argv = bundle.arguments("look", "{}", alone=alone)
        ran = run(place, bundle.code + b"data", *argv)
        assert (ran.returncode, ran.stderr) == (7, b"")
        assert json.loads(ran.stdout) == [["bequeath", "look", "{}"], "data", "gr\xfcn"]
    ran = run(place, b"typed", *bundle.arguments_with_code("shell"))
    assert json.loads(ran.stdout)[:2] == [["bequeath", "shell"], "typed"]
    assert os.listdir(place) == ["json.py"], "nothing is left"


@pytest.mark.parametrize("named", [":{0}/own", ".:{0}/own", "{0}/own:", "here/..:{0}/own", "here"])
def test_a_path_from_where_it_runs_shadows_nothing(
    bundle: Bundle, tmp_path: Path, named: str
) -> None:
    """Where modules that trials see are to be seen: they run in another folder. Mutation: what
    Python has made a whole path of an empty one stays."""
    (tmp_path / "own").mkdir()
    (tmp_path / "here").mkdir()
    for folder in (tmp_path, tmp_path / "here"):
        for name in ("base64", "json"):
            (folder / f"{name}.py").write_text("raise SystemExit('imported from where it was run')")
    ran = subprocess.run(
        [SYSTEM, *bundle.arguments("look", alone=False)],
        input=bundle.code,
        capture_output=True,
        cwd=tmp_path,
        timeout=240,
        env={"PYTHONPATH": named.format(tmp_path)},
    )
    assert (ran.returncode, ran.stderr) == (7, b"")


def test_a_folder_that_is_named_as_a_whole_is_seen_from_within(
    bundle: Bundle, tmp_path: Path
) -> None:
    """Trials see it, too: the home folder, say. Mutation: the folder that it runs in is left out
    however it is named."""
    package = tmp_path / "asked"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("def main():\n    import of_the_user\n    return 7\n")
    (tmp_path / "of_the_user.py").write_text("")
    asked = bundle_of(package)
    ran = subprocess.run(
        [SYSTEM, *asked.arguments(alone=False)],
        input=asked.code,
        capture_output=True,
        cwd=tmp_path,
        timeout=240,
        env={"PYTHONPATH": str(tmp_path)},
    )
    assert (ran.returncode, ran.stderr) == (7, b"")


def test_code_that_did_not_arrive_whole_is_not_run(bundle: Bundle, tmp_path: Path) -> None:
    code = bundle.code
    spoilt = code[:-1] + bytes([code[-1] ^ 1])
    for wrong in (spoilt, code[:100], b""):
        ran = run(tmp_path, wrong, *bundle.arguments())
        assert (ran.returncode, ran.stdout) == (1, b"")
        assert b"did not arrive whole" in ran.stderr
    *most, given = bundle.arguments_with_code()
    ran = run(tmp_path, b"", *most, given[:-8])
    assert (ran.returncode, ran.stdout) == (1, b"")
    assert b"did not arrive whole" in ran.stderr


def test_it_is_the_same_bytes_for_the_same_code_and_knows_what_stays(bundle: Bundle) -> None:
    root = Path(on_host.__file__).parent
    first = our_programs().code
    bundle_of.cache_clear()
    assert our_programs().code == first
    assert bundle_of(root, without=("shell.py",)).code != first
    assert len(first) < 1 << 16, "an argument has 128 KiB at most, in base64"


def test_modules_of_a_user_are_seen_only_where_they_are_to_be(
    bundle: Bundle, tmp_path: Path
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("print('of the user')\n")
    for alone in (True, False):
        ran = subprocess.run(
            [SYSTEM, *bundle.arguments(alone=alone)],
            input=bundle.code,
            capture_output=True,
            timeout=240,
            env={"PYTHONPATH": str(tmp_path / "own")},
        )
        assert (b"of the user" in ran.stdout) is not alone


def test_an_old_python_can_read_what_it_is_to_say_no_to() -> None:
    """In the C locale Python 3.6 can read nothing but ASCII from a command line."""
    assert START.isascii()
    ast.parse(START, feature_version=(3, 4))
