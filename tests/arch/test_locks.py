"""What a developer and CI install is named with hashes, and is what pyproject.toml admits."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from trial_runtime.torch_version import SAFE_TORCH, why_unsafe

ROOT = Path(__file__).parents[2]
LOCKS = ("dev", "demo", "docs", "tools")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

#: Below these there are known holes.
FLOORS = {"torch": "2.10", "filelock": "3.20.3", "scikit-learn": "1.5", "paramiko": "3.4",
          "flask": "3.1.3", "flask-cors": "6"}  # fmt: skip


def locked(name: str) -> dict[str, set[str]]:
    """Names and versions in a lock; several where Pythons differ."""
    found: dict[str, set[str]] = {}
    text = (ROOT / f"requirements/{name}.lock").read_text()
    for block in re.split(r"\n(?=\S)", text.replace("\\\n", " ")):
        if block.startswith("#") or not block.strip():
            continue
        line = block.split("\n")[0]
        match = re.match(r"(\S+)==(\S+)( ; [^-]+?)? +--hash=sha256:[0-9a-f]{64}", line)
        assert match, f"{name}.lock: no version or no hash: {line[:80]}"
        found.setdefault(canonicalize_name(match[1]), set()).add(match[2])
    return found


def wanted(*extras: str) -> list[Requirement]:
    lines = list(PYPROJECT["dependencies"])
    for extra in extras:
        lines += PYPROJECT["optional-dependencies"][extra]
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize(
    "lock, extras",
    [("dev", ("ssh", "s3", "gpu", "optuna", "plot", "examples", "dev")),
     ("demo", ("plot", "examples"))],
)  # fmt: skip
def test_a_lock_has_what_the_project_needs(lock: str, extras: tuple[str, ...]) -> None:
    found = locked(lock)
    for requirement in wanted(*extras):
        versions = found.get(canonicalize_name(requirement.name), set())
        assert versions, f"{lock}.lock lacks {requirement}: make lock"
        for version in versions:
            assert requirement.specifier.contains(version), f"{requirement}, {version}: make lock"


def test_the_lock_of_the_site_is_what_its_bounds_admit() -> None:
    """Mutation: a lock of before a change of docs.in."""
    found = locked("docs")
    lines = (ROOT / "requirements/docs.in").read_text().splitlines()
    for requirement in (Requirement(line) for line in lines if not line.startswith("#")):
        versions = found[canonicalize_name(requirement.name)]
        assert len(requirement.specifier) == 2, f"{requirement} has no bounds"
        assert all(requirement.specifier.contains(each) for each in versions), requirement


def test_all_extras_are_locked_but_torch() -> None:
    (everything,) = PYPROJECT["optional-dependencies"]["all"]
    extras = Requirement(everything).extras - {"torch"} | {"dev"}
    renew = (ROOT / "requirements/renew.sh").read_text()
    first = renew.partition("compile dev ")[2].partition("compile demo ")[0]
    assert set(re.findall(r"--extra (\S+)", first)) == extras


def test_locks_agree() -> None:
    dev = locked("dev")
    for name, versions in locked("demo").items():
        assert versions <= dev[name], name


@pytest.mark.parametrize("lock", LOCKS)
def test_no_lock_has_torch_or_names_a_host(lock: str) -> None:
    text = (ROOT / f"requirements/{lock}.lock").read_text()
    assert "://" not in text
    assert not {name for name in locked(lock) if name == "torch" or name.startswith("nvidia-c")}


def test_known_holes_are_below_the_floors() -> None:
    everything = {
        canonicalize_name(one.name): one
        for extra in PYPROJECT["optional-dependencies"]
        if extra != "all"
        for one in wanted(extra)
    }
    for name, floor in FLOORS.items():
        assert not everything[name].specifier.contains(_below(floor)), f"{name} admits {floor}'s"
        assert everything[name].specifier.contains("99")
    (pinned,) = re.findall(r"^torch==(\S+)", (ROOT / "constraints.txt").read_text(), re.M)
    assert why_unsafe(pinned) == ""
    assert FLOORS["torch"] == ".".join(map(str, SAFE_TORCH))


def _below(floor: str) -> str:
    *above, last = (*Version(floor).release,)
    return ".".join(map(str, (*above, last - 1, 99) if last else (above[0] - 1, 99)))


def test_make_installs_by_hash_and_landing_needs_no_list_of_holes() -> None:
    text = (ROOT / "Makefile").read_text()
    installs = re.findall(r"pip.* install .*|\$\(PIP\) install .*", text)
    assert len(installs) == 4
    for line in installs:
        by_hash = "--require-hashes -r" in line
        assert by_hash or '"$(TORCH)"' in line or "--no-deps --no-build-isolation -e ." in line
    assert "audit" not in (ROOT / ".ci/run").read_text()
    assert not re.search(r"^(test|lint|docs)\S*:.*audit", text, re.M)


@pytest.fixture
def audit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit", ROOT / "requirements/audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_HOLE = {"id": "CVE-1", "fix_versions": ["2.0"], "aliases": [], "description": "bad"}


@pytest.mark.parametrize(
    "packages, code, words",
    [
        ([{"name": "a", "version": "1", "vulns": []}], 0, "no known holes in 1 packages"),
        ([{"name": "a", "version": "1", "vulns": [_HOLE]}], 1, "a 1: CVE-1, mended in 2.0"),
        ([{"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "none"}],
         2, "NOT looked at: 1 of 2 packages: none"),
        ([], 2, "NOT looked at"),
        (None, 2, "NOT looked at: no route"),
    ],
)  # fmt: skip
def test_an_audit_that_could_not_look_is_no_good_news(
    audit: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    packages: Any,
    code: int,
    words: str,
) -> None:
    said = "" if packages is None else json.dumps({"dependencies": packages})
    ended = subprocess.CompletedProcess([], 1, said, "Traceback\nno route\n")
    monkeypatch.setattr(audit.subprocess, "run", lambda *_, **__: ended)
    assert audit.main() == code
    shown = capsys.readouterr()
    assert words in shown.out + shown.err
