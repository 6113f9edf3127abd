"""The same code on a host that has nothing but an old Python: JSON in, JSON out."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nfs_setup.errors import RequestRefused
from nfs_setup.request import ClientRequest, ServerRequest, request_of
from tests.support.old_python import WHY_NOT, old_python

ROOT = Path(__file__).parents[3]


def ask(python: str, text: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [python, "-m", "nfs_setup"],
        input=text,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        env={"PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


PLAN = {"verb": "client", "source": "server:/w", "point": "/mnt/bequeath-test", "dry_run": True}


def test_a_request_becomes_a_report() -> None:
    code, report = ask(sys.executable, json.dumps(PLAN))
    assert code == 0, report
    assert report["target"] == "/mnt/bequeath-test"
    assert report["dry_run"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"verb": "client"}', json.dumps({**PLAN, "x": 1})]
)
def test_a_fault_becomes_an_answer(text: str) -> None:
    code, answer = ask(sys.executable, text)
    assert code == 1
    assert answer["error"]["kind"] == "RequestRefused"
    assert answer["error"]["message"]


@pytest.mark.skipif(old_python() is None, reason=WHY_NOT)
def test_python_39_is_enough() -> None:
    python = old_python()
    assert python is not None
    code, report = ask(python, json.dumps(PLAN))
    assert code == 0, report


def test_nothing_is_used_that_python_39_has_not() -> None:
    for path in sorted((ROOT / "nfs_setup").rglob("*.py")):
        tree = ast.parse(path.read_text(), feature_version=(3, 9))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("dataclass"):
                assert not {k.arg for k in node.keywords} & {"slots", "kw_only"}, path.name
            if isinstance(node, ast.ImportFrom | ast.Import):
                text = ast.unparse(node)
                assert not any(new in text for new in ("StrEnum", "UTC", "TypeAlias")), path.name
        assert "from __future__ import annotations" in path.read_text() or path.stem == "__init__"


def test_requests_are_read_strictly() -> None:
    assert request_of(PLAN) == ClientRequest("server:/w", "/mnt/bequeath-test", dry_run=True)
    document = {"verb": "server", "path": "/w", "clients": ["a"], "sync": False}
    assert request_of(document) == ServerRequest("/w", ("a",), sync=False)
    for wrong in (
        {**document, "clients": "a"},
        {**document, "clients": [1]},
        {**document, "sync": 1},
        {**document, "nfs3": "yes"},
        {**PLAN, "nconnect": True},
        {**PLAN, "verb": "cluster"},
        {**PLAN, "verb": ["client"]},
    ):
        with pytest.raises(RequestRefused):
            request_of(wrong)
