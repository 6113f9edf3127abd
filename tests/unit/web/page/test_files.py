"""The page's files as they are shipped: what others wrote is as it was taken, with its licence."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.page_files import PAGES, visited

ROOT = Path(__file__).parents[4]
STATIC = ROOT / "dispatcher" / "web" / "static"
JUDGES = ROOT / "tests" / "system" / "page" / "vendor"
IMPORT = re.compile(r'(?:from|import\()\s*"([^"]+)"')
OURS = sorted([*STATIC.glob("page/*.js"), *STATIC.glob("pages/*.js")])


@pytest.mark.parametrize("folder", [STATIC / "vendor", JUDGES], ids=["page", "judges"])
def test_what_others_wrote_is_as_it_was_taken(folder: Path) -> None:
    """``requirements/renew_page.sh`` writes both: the files and this list."""
    listed = dict(
        reversed(line.split("  ")) for line in (folder / "vendored.sha256").read_text().splitlines()
    )
    there = {path.name for path in folder.iterdir()} - {"vendored.sha256"}
    assert there == set(listed)
    for name, digest in listed.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name
    assert any(name.startswith("LICENSE") for name in listed)


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_a_module_takes_only_what_is_shipped_and_never_makes_markup(path: Path) -> None:
    text = path.read_text()
    for name in IMPORT.findall(text):
        assert name.startswith("."), f"{path.name} takes {name} from elsewhere"
        assert (path.parent / name).resolve().is_file(), f"{path.name} takes {name}"
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerously|\beval\(|new Function|https?://"
    assert re.findall(forbidden, text) == []
    assert len(text.splitlines()) <= 420
    assert text.startswith("/**"), "a module says what it is for"


def test_the_document_names_files_that_are_there_and_holds_no_script_itself() -> None:
    text = (STATIC / "index.html").read_text()
    named = re.findall(r'(?:href|src)="assets/([^"]+)"', text)
    assert [name for name in named if not (STATIC / name).is_file()] == []
    assert re.findall(r"<script(?![^>]*\ssrc=)|<style|\son\w+=|\sstyle=", text) == []
    preloaded = {name for name in named if name.endswith(".js")}
    assert first_modules() <= preloaded  # one round trip, not one for each level of imports


def first_modules() -> set[str]:
    """The modules that the first page needs, by what imports what."""
    found: set[str] = set()
    ahead = [STATIC / "page/main.js", STATIC / "pages/overview.js"]
    while ahead:
        path = ahead.pop().resolve()
        name = path.relative_to(STATIC).as_posix()
        if name not in found:
            found.add(name)
            taken = re.findall(r'from "(\.[^"]+)"', path.read_text())
            ahead += [path.parent / each for each in taken]
    return found


def test_the_wheel_has_the_page(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1577836800"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        shipped = set(wheel.namelist())
    wanted = {path.relative_to(ROOT).as_posix() for path in STATIC.rglob("*") if path.is_file()}
    assert wanted <= shipped
    assert not [name for name in shipped if name.rpartition("/")[2].startswith("axe.")]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_without_data_is_small(page: str) -> None:
    """Every file that a visit to it loads, compressed each by itself, as a server sends them. In
    bytes."""
    files = visited(PAGES[page])
    assert {"live.js", "index.html", "page.css"} <= {one.name for one in files}
    assert sum(len(gzip.compress(one.read_bytes(), 6)) for one in files) <= 120_000
