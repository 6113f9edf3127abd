"""Files on pages that other programs read: each is as its makers have it."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from tests.support.kubernetes.train_jobs import runtimes
from tests.support.pages import ROOT, Reader, block_with, blocks, python_blocks
from tests.support.web_server import WebServer
from trial_runtime.failpoints import NAMES


def test_a_runtime_of_kubeflow_trainer() -> None:
    """By the published definition."""
    definition = runtimes("TrainingRuntime")
    body = yaml.safe_load(block_with("docs/trainer.md", "apiVersion:").text)
    assert definition.complaints(body) == []
    assert definition.pruned(body)[1] == []


def test_prometheus_finds_the_metrics(reader: Reader) -> None:
    """What it is given leads to an answer: the token's file, the port, the path."""
    (job,) = yaml.safe_load(block_with("docs/web.md", "scrape_configs:").text)["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["127.0.0.1:8077"]}]
    server = WebServer(reader.home, reader.folder / "state")
    try:
        token = Path(job["authorization"]["credentials_file"])
        state = token.parents[2].relative_to("/home/me")
        assert state == Path(".local/state")
        kept = reader.folder / "state" / token.relative_to("/home/me/.local/state")
        ask = f'curl -sS --fail -H "Authorization: Bearer $(cat {kept})"'
        assert "# TYPE bequeath" in reader.type(f"{ask} http://127.0.0.1:{server.port}/metrics")
    finally:
        server.end()


def test_a_failpoint_of_the_page_is_one() -> None:
    (block,) = python_blocks("docs/contributing/failpoints.md")
    struck = [
        name
        for shown in blocks(ROOT / "docs/contributing/failpoints.md")
        for name in re.findall(r"[\"']([a-z]+\.[a-z]+\.[a-z]+)", shown.text)
    ]
    assert len(struck) == 2
    assert [name for name in struck if name not in NAMES] == []
    exec(block, {"failpoint": lambda name: NAMES[name]})
