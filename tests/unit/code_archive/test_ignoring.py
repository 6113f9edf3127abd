"""What belongs to the code: our rules against git's own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.code_archive import scan_code
from dispatcher.code_archive.pattern import parse
from dispatcher.errors import UserError

NAMES = st.sampled_from(["a", "b", "data", "x.py", "y.bin", ".hidden"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
#: Not among them: "/a**", which git takes for "a" and all below, unlike what gitignore(5) says.
_CORES = (
    r"a b data *.py x.* * a/b data/* a/**/x.py [ab] a/** [!a] [^ab]* ? x\.py *a* **a "
    r"[[:alpha:]] [a- []a] \#a #a .* [!-0]* a/*/b [z-a] \ ** x.[p]y [.x]*"
)
PATTERNS = st.builds(
    lambda no, root, core, end: f"{no}{root}{core}{end}",
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/", "**/"]),
    st.sampled_from(_CORES.split()),
    st.sampled_from(["", "", "/", " ", "\\ "]),
)


def names(folder: Path) -> set[str]:
    """The files that belong to the code, but for the rules themselves."""
    found = {entry.name for entry in scan_code(folder).entries if not entry.path.is_dir()}
    return {name for name in found if not name.endswith("ignore")}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty repository, for any folder to be its working tree."""
    if shutil.which("git") is None:
        pytest.skip("git is not here to compare with")
    path = tmp_path_factory.mktemp("git") / "repository"
    subprocess.run(["git", "init", "-q", "--bare", str(path)], check=True, timeout=240)
    return path


def kept_by_git(repository: Path, folder: Path) -> set[str]:
    where = [f"--git-dir={repository}", f"--work-tree={folder}"]
    what = ["ls-files", "--others", "--exclude-per-directory=.gitignore", "-z"]
    told = subprocess.run(
        ["git", *where, *what], cwd=folder, capture_output=True, check=True, timeout=240
    )
    return {x for x in told.stdout.decode().split("\0") if x and not x.endswith("ignore")}


@given(
    paths=st.sets(PATHS, min_size=1, max_size=8),
    rules=st.lists(PATTERNS, max_size=4),
    nested=st.lists(PATTERNS, max_size=3),
)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_the_same_files_as_git_keeps(
    repository: Path, paths: set[str], rules: list[str], nested: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in sorted(paths):
            try:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text("")
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                continue  # a file is where this one wants a folder
        for place, lines in ((folder, rules), (folder / "a", nested)):
            if place.is_dir():
                for file in (".gitignore", ".bequeathignore"):
                    (place / file).write_text("".join(f"{line}\n" for line in lines))
        assert names(folder) == kept_by_git(repository, folder)


def lay(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)


@pytest.mark.parametrize(
    "line, path, fits",
    [
        ("a", "b/a", True),
        ("/a", "b/a", False),
        ("a/", "a", False),
        ("a/b", "a/b", True),
        ("a/b", "c/a/b", False),
        ("**/a/b", "c/a/b", True),
        ("a/**", "a/b/c", True),
        ("a/**", "a", False),
        ("a/**/b", "a/b", True),
        ("*.py", "a/b.py", True),
        ("a*b", "a/b", False),
        ("[!a]", "a", False),
        ("[", "[", False),
        (r"\[", "[", True),
        ("a ", "a", True),
        (r"a\ ", "a ", True),
    ],
)
def test_single_patterns(line: str, path: str, fits: bool) -> None:
    pattern = parse(line)
    assert bool(pattern and pattern.fits(path, is_folder=False)) is fits


@pytest.mark.parametrize(
    "rules",
    [
        ["*.bin", "!y.bin"],
        ["data/*", "!data/x.py"],
        ["/*", "!/a", "!*.py"],
        ["a/**/b", "!a/b"],
        ["*", "!*/", "!*.py"],  # only Python, wherever it lies; libraries get this one wrong
        ["data/", "!data/x.py"],  # in vain: the folder is left out
    ],
)
def test_what_is_taken_back(repository: Path, tmp_path: Path, rules: list[str]) -> None:
    lay(tmp_path, "a/b", "a/c/b", "data/x.py", "data/y.bin", "x.py", "y.bin", "z.bin", ".hidden")
    for file in (".gitignore", ".bequeathignore"):
        (tmp_path / file).write_text("".join(f"{line}\n" for line in rules))
    assert names(tmp_path) == kept_by_git(repository, tmp_path)


def test_caches_and_history_are_left_out(tmp_path: Path) -> None:
    lay(tmp_path, "a.py", "a.pyc", ".git/x", "b/__pycache__/x", ".venv/x", "b/.git")
    assert names(tmp_path) == {"a.py"}


def test_a_virtual_environment_is_left_out_whatever_its_name(tmp_path: Path) -> None:
    """Mutation: its Python, a link out of the code, keeps all machines from being had."""
    lay(tmp_path, "a.py", "env/pyvenv.cfg", "env/lib/x.py", "tools/env/pyvenv.cfg")
    (tmp_path / "env" / "python").symlink_to(sys.executable)
    assert names(tmp_path) == {"a.py"}


def test_what_is_built_in_can_be_taken_back_but_never_history(tmp_path: Path) -> None:
    lay(tmp_path, "a.py", "a.pyc", ".venv/x")
    lay(tmp_path, ".git/x", "sub/.git")
    (tmp_path / ".bequeathignore").write_text("!*.pyc\n!.venv/\n!.git\n!*\n")
    assert names(tmp_path) == {"a.py", "a.pyc", ".venv/x"}


def test_both_files_count_and_ours_comes_last(tmp_path: Path) -> None:
    lay(tmp_path, "a.py", "b.py", "c.bin")
    (tmp_path / ".nniignore").write_text("*.py\n*.bin\n")
    (tmp_path / ".bequeathignore").write_text("!b.py\n")
    assert names(tmp_path) == {"b.py"}


def test_git_s_own_file_is_not_read(tmp_path: Path) -> None:
    lay(tmp_path, "a.py", "data.bin")
    (tmp_path / ".gitignore").write_text("*.bin\n")
    assert names(tmp_path) == {"a.py", "data.bin"}


def test_rules_that_are_none(tmp_path: Path) -> None:
    (tmp_path / ".bequeathignore").write_bytes(b"\xff\xfe\n")
    with pytest.raises(UserError, match="cannot be read") as caught:
        scan_code(tmp_path)
    assert caught.value.where.endswith(".bequeathignore")
