"""The pages say what the code does: links lead somewhere, commands exist, references hold."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bequeath.names import HOMES

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for page in ROOT.rglob("*.md")
    if not {".venv", "envs", "node_modules"} & set(page.relative_to(ROOT).parts)
)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(#[^)\s]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    for target, _ in LINK.findall(page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readme_is_short_enough_to_be_read() -> None:
    assert 120 <= len((ROOT / "README.md").read_text().splitlines()) <= 180


def test_generated_pages_are_current() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, text in module.pages().items():
        assert (ROOT / "docs" / name).read_text() == text, f"run `make docs`: {name} is stale"


def test_every_public_name_is_on_its_page() -> None:
    """Mutation: a name moves to a module that no table of the page takes names from."""
    page = (ROOT / "docs" / "python-api.md").read_text()
    assert [name for name in HOMES if name[:2] != "__" and f"| `bq.{name}` |" not in page] == []


def test_the_readmes_tuner_is_the_one_of_the_example() -> None:
    (shown,) = re.findall(
        r"```python\n(import bequeath as bq\n\n\nclass .*?)```",
        (ROOT / "README.md").read_text(),
        re.S,
    )
    example = (ROOT / "examples" / "hello" / "tuner.py").read_text()
    assert shown.strip() == example.split('"""', 2)[2].strip()


def test_commands_in_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text()
    names = {m.split()[0] for m in re.findall(r"`bequeath ([a-z][^`]*)`", text)}
    assert names >= {"top", "why", "resume"}
    for name in sorted(names):
        done = subprocess.run(
            [sys.executable, "-m", "dispatcher.cli", *shlex.split(name), "--help"],
            capture_output=True,
            cwd=ROOT,
            timeout=240,
        )
        assert done.returncode == 0, name
