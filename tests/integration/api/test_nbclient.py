"""A real notebook, run by nbclient in a real kernel of Jupyter's."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.trackers import python_of

REPOSITORY = Path(__file__).parents[3]

CELLS = (
    "import numpy as np\nimport bequeath as bq\nX = np.arange(100.0)",
    "%%time\n"  # runs it in a way of its own
    "def trial(parameters):\n"
    "    x = parameters['x']\n"
    "    if x == 3:\n"
    "        raise ValueError('too much')\n"
    "    return float(X[x])",
    "experiment = bq.Experiment(\n"
    "    trial=trial,\n    tuner='GridSearch',\n    search_space={'x': bq.choice(1, 2, 3)},\n"
    "    trial_concurrency=1,\n    max_trial_number=3,\n    trial_retries=0,\n"
    "    experiment_working_directory='kept',\n)",
    "experiment.run()",
    "print(next(one.error for one in experiment.trials() if one.error))",
    "experiment",
    "experiment.trials()",
    "heard = [one.kind async for one in experiment.events()]\nprint(heard)",
    "experiment.trial('x')",
)

#: Runs in the environment that has nbclient: cells from standard input, the notebook to standard
#: output.
PROGRAM = """
import json, sys
import nbclient, nbformat
cells = [nbformat.v4.new_code_cell(text) for text in json.load(sys.stdin)]
notebook = nbformat.v4.new_notebook(cells=cells)
nbclient.NotebookClient(notebook, kernel_name="ours", timeout=300, allow_errors=True).execute()
print(nbformat.writes(notebook))
"""

#: The kernel is ours with Jupyter's packages behind our own.
KERNEL = """
import sys
sys.path.append({site!r})
from ipykernel.kernelapp import launch_new_instance
launch_new_instance()
"""


@pytest.fixture
def outputs(tmp_path: Path) -> list[list[Any]]:
    """The outputs of all cells."""
    python = python_of("jupyter")
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.check_output([python, "-c", where], text=True).strip()
    spec = tmp_path / "jupyter" / "kernels" / "ours" / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = [sys.executable, "-c", KERNEL.format(site=site), "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": "ours", "language": "python"}))
    done = subprocess.run(
        [python, "-W", "ignore", "-c", PROGRAM],
        input=json.dumps(CELLS),
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "JUPYTER_PATH": str(tmp_path / "jupyter"),
            "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
            "IPYTHONDIR": str(tmp_path / "ipython"),
            "XDG_STATE_HOME": str(tmp_path / "state"),
        },
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    return [one["outputs"] for one in json.loads(done.stdout)["cells"]]


def _text(outputs: list[Any], name: str) -> str:
    return "".join("".join(one["text"]) for one in outputs if one.get("name") == name)


def test_a_notebook(outputs: list[list[Any]]) -> None:
    """Mutations: no bar; lines of our module, or those below a magic; a list of
    trials as long as it is."""
    assert not outputs[0]
    assert not outputs[2]
    bar = _text(outputs[3], "stderr")
    assert re.search(r"\r100% \|█{24}\| 3/3 trials", bar), bar
    error = _text(outputs[4], "stdout")
    assert "Cell [2], line 5, in trial\n    raise ValueError('too much')" in error
    for cell in outputs[5:7]:
        (shown,) = cell
        assert "<table>" in "".join(shown["data"]["text/html"])
        assert len("".join(shown["data"]["text/plain"])) < 300
    heard = _text(outputs[7], "stdout")
    assert heard.count("trial_end") == 3
    assert heard.rstrip().endswith("'experiment_end']")
    (refused,) = outputs[8]
    assert refused["ename"] == "UserError"
    assert "a whole number" in refused["evalue"]
    lines = [line for line in refused["traceback"] if "dispatcher/" in line]
    assert len(lines) <= 1
