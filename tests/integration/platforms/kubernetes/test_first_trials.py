"""The first trials of the pages run as they say, in pods of a cluster of our own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.checker import check_store
from tests.support.kubernetes.cluster import cluster
from tests.support.kubernetes.training_operator import training_operators
from tests.support.ports import free_port
from tests.support.processes import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("page, plural", [("kubernetes", "jobs"), ("kubeflow", "pytorchjobs")])
def test_the_first_trials_of_the_page_run_as_written(
    page: str, plural: str, tmp_path: Path
) -> None:
    """But for addresses, the Python of the image, a folder in the place of its disk, and a line
    that trials print. Mutation: what a trial has printed goes with its pod."""
    found = re.search(
        r"\$ cat hello.yml\n(.*?)\$ bequeath", (ROOT / f"docs/{page}.md").read_text(), re.S
    )
    assert found is not None
    text = found[1].replace("10.0.0.9", "127.0.0.1").replace("7070", str(free_port()))
    own = f"python: {sys.executable}\n  workFolder: {tmp_path / 'work'}\n"
    text = text.replace("  slots: 2\n", f"  {own}  slots: 2\n")
    command = "bq.get_parameters()['x'])\""
    assert command in text
    text = text.replace(command, f"{command} && echo it has printed this")
    assert "probe" not in text
    assert "weightsRoot" not in text
    (tmp_path / "hello.yml").write_text(text)
    (tmp_path / "cluster").mkdir()
    environment = {**os.environ, "BEQUEATH_HOME": str(tmp_path / "home")}

    def bequeath(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "dispatcher.cli", *words],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )

    with cluster(tmp_path / "cluster", places=2, operators=training_operators()) as there:
        environment["KUBECONFIG"] = str(there.api.kubeconfig(tmp_path))
        ran = bequeath("run", "hello.yml")
        assert ran.returncode == 0, ran.stdout + ran.stderr
        wait_until(lambda: there.api.objects.all(plural) == [], "no Job is left")
    assert "10 trials: 10 succeeded" in ran.stdout + ran.stderr, ran.stdout + ran.stderr
    (journal,) = (tmp_path / "home").glob("*/journal.sqlite")
    assert check_store(journal, over=True) == []
    shown = bequeath("trial", "log", "0")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == "it has printed this\n", "its pod has gone"
