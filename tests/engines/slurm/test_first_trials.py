"""The first trials of the page run as it says, in jobs of a real cluster."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from dispatcher.core import events as e
from tests.engines.slurm.conftest import ROOT, Lab
from tests.support.checker import check_store
from tests.support.processes import wait_until
from tests.support.slurm_cluster import why_not

pytestmark = [
    pytest.mark.needs("slurm"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

PAGE = ROOT / "docs/slurm.md"


def test_the_first_trials_of_the_page_run_as_written(lab: Lab) -> None:
    """In a home that nodes see, with experiments on a disk that they do not. Mutations: they need
    an address, or the experiment's folder; a job for each trial; a key of the page that is none."""
    found = re.search(r"\$ cat hello.yml\n(.*?)\$ bequeath run hello.yml", PAGE.read_text(), re.S)
    assert found is not None
    home = lab.base / "home"
    (home / "bequeath").mkdir(parents=True)
    (home / "hello.yml").write_text(found[1])
    hidden = lab.cluster.folder.parent / "hidden" / "bequeath"
    ran = subprocess.run(
        [sys.executable, "-m", "dispatcher.cli", "run", "hello.yml"],
        cwd=home,
        env={
            **os.environ,
            **lab.cluster.environment,
            "HOME": str(home),
            "BEQUEATH_HOME": str(hidden),
            "PYTHONPATH": str(ROOT),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "10 trials: 10 succeeded" in ran.stdout + ran.stderr, ran.stdout + ran.stderr
    (journal,) = hidden.glob("*/journal.sqlite")
    assert check_store(journal, over=True) == []
    assert not lab.events(journal.parent, e.WorkerLost)
    names = lab.cluster.run("squeue", "--noheader", "--states=all", "--format=%j").split()
    names = [name for name in names if name.startswith(f"{journal.parent.name[:10]}")]
    assert len([name for name in names if "-probe-" in name]) == 1
    assert len(names) == 2, "one looks over a node, and one runs all ten trials"
    wait_until(lambda: not lab.cluster.run("squeue", "--noheader"), "no job is left")
    assert not list((home / "bequeath").glob("**/*.config")), "no key is left"
