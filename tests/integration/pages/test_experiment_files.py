"""Lines of an experiment file on all pages: each is read as a whole file would be."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dispatcher.experiment import ExperimentConfig, load_experiment
from tests.support.packages import lay_down
from tests.support.pages import PAGES, ROOT, Block, blocks, shown_files

#: What the rest of the file says, where a block does not.
REST = {
    "trialCommand": "true",
    "searchSpace": {"x": "uniform(0, 1)"},
    "tuner": {"name": "Random"},
    "trialConcurrency": 1,
    "trainingService": {"platform": "local"},
    "channel": {
        "transport": "tcp",
        "host": "0.0.0.0",
        "port": 7070,
        "beyondThisMachine": True,
    },
    "weightsRoot": "/srv/weights",
}

#: Required keys of a section, where a page goes on with a section that it has shown before.
SHOWN_BEFORE = {
    "docs/kubernetes.md": {"image": "registry.lab/nas:7"},
    "docs/vertex.md": {
        "project": "lab-project-7",
        "region": "us-central1",
        "image": "us-docker.pkg.dev/lab-project-7/nas/trials:7",
        "machineType": "n1-standard-8",
    },
}

#: YAML that is no experiment file of ours, by its first line, and the test that reads it.
FOREIGN = {
    "share: ": "tests/unit/cli/test_nfs_cluster.py",
    "apiVersion: ": "tests/integration/pages/test_other_files.py",
    "scrape_configs:": "tests/integration/pages/test_other_files.py",
}

#: Code that experiment files name, as modules of nothing.
MODULES = ("trial", "train", "serve", "tuner", "hooks", "patience", "my_tuner", "rule")


def shown() -> list[Any]:
    found = []
    for page in PAGES:
        for block in blocks(page):
            files = [(name, text) for name, text in shown_files(block) if name.endswith(".yml")]
            if block.language == "yaml" and not block.text.startswith(tuple(FOREIGN)):
                files = [("", block.text)]
            found += [pytest.param(block, text, id=block.place) for _, text in files]
    return found


def read(text: str, folder: Path) -> ExperimentConfig:
    """Read lines of an experiment file with the rest of it, as a file for another machine."""
    for name in MODULES:
        (folder / f"{name}.py").write_text("")
    keys = yaml.safe_load(text)
    rest = {key: value for key, value in REST.items() if key not in keys}
    if "trialFunction" in keys:
        del rest["trialCommand"]
    if "trial" in keys:  # a file in NNI's words is whole
        rest = {}
    (folder / "experiment.yml").write_text(f"{text}\n{yaml.safe_dump(rest) if rest else ''}")
    return load_experiment(folder / "experiment.yml", elsewhere=True)


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The packages below ``examples``, installed."""
    there = tmp_path / "installed"
    for word in ("prefix", "queue"):
        package = f"bequeath_{word}"
        points = f"[bequeath.backends]\n{word} = {package}.platform:{word.upper()}\n"
        lay_down(there, package, points)
        monkeypatch.syspath_prepend(str(ROOT / "examples" / f"backend_{word}"))
    monkeypatch.syspath_prepend(str(there))
    yield
    for name in [name for name in sys.modules if name.startswith("bequeath_")]:
        del sys.modules[name]


@pytest.mark.usefixtures("examples")
@pytest.mark.parametrize("block, text", shown())
def test_lines_of_a_file_are_read(block: Block, text: str, tmp_path: Path) -> None:
    """Mutation: a key is renamed, and a page has its former name."""
    page = block.place.partition(":")[0]
    before = "".join(f"  {key}: {value}\n" for key, value in SHOWN_BEFORE.get(page, {}).items())
    if before and "image:" not in text:
        platform = next(line for line in text.splitlines() if line.startswith("  platform:"))
        text = text.replace(f"{platform}\n", f"{platform}\n{before}")
    first = text.partition(":")[0]
    others = [line for line in text.splitlines() if line.startswith(f"{first}:")]
    if len(others) > 1:  # one of these lines
        for line in others:
            read(line, tmp_path)
    else:
        read(text, tmp_path)
