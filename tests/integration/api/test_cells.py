"""Trials whose functions come from cells: their data, what is around them, and their tracebacks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]

#: Cells as IPython runs them, in a script, which needs no server.
SCRIPT = r"""
import linecache

In = [""]
with open("flask.py", "w") as file:  # is installed, too
    file.write("WORD = 'mine'")


def cell(text):
    name = f"/tmp/ipykernel_1/{len(In)}.py"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    In.append(text)
    exec(compile(text, name, "exec", dont_inherit=True), globals())


cell('''
import flask
import numpy as np
import bequeath as bq

X = np.arange(20_000, dtype=np.float32)
PARTS = {"low": X[:3], "names": [f"part {n}" for n in range(500)]}
''')
cell('''
def make(bound):
    def trial(parameters):
        x = parameters["x"]
        if x > bound:
            raise ValueError(f"{x} is too much")
        assert flask.WORD == "mine", "a module beside the notebook comes first there"
        return float(X[x]) + float(PARTS["low"].sum()) + len(PARTS["names"])
    return trial
''')
cell('''
def experiment():
    return bq.Experiment(
        trial=make(2),
        tuner="GridSearch",
        search_space={"x": bq.choice(1, 2, 3)},
        trial_concurrency=1,
        max_trial_number=3,
        trial_retries=0,
        experiment_working_directory="kept",
    )


first = experiment()
X += 1  # what it has is what it was given
first.run(quiet=True)
''')
ends = {one.parameters["x"]: one for one in first.trials()}
assert ends[1].value == 1 + 3 + 500, ends
assert ends[2].value == 2 + 3 + 500, ends
assert ends[3].outcome == "failed", ends
assert 'Cell [2], line 6, in trial\n    raise ValueError(f"{x} is too much")' in ends[3].error
assert "bequeath_trial" not in ends[3].error


def data(one):
    return {path.name: path.stat() for path in (one.folder / "notebook" / "data").iterdir()}


changed = experiment().start()
X -= 1
same = experiment().start()
changed.wait()
same.wait()
assert data(first).keys() == data(same).keys()
assert len(data(first)) == 3
assert {name: one.st_ino for name, one in data(first).items()} == {
    name: one.st_ino for name, one in data(same).items()
}
assert {one.st_mode & 0o777 for one in data(first).values()} == {0o600}
assert len(data(changed).keys() & data(first).keys()) == 1  # the names of parts
assert {one.parameters["x"]: one.value for one in changed.trials()}[1] == 2 + 6 + 500
print("well done")
"""


def test_data_closures_and_lines_of_cells(tmp_path: Path) -> None:
    assert _run(SCRIPT, tmp_path) == "well done\n"


def _run(script: str, tmp_path: Path) -> str:
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "BEQUEATH_HOME": str(tmp_path / "home"),
        },
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


PAGE = REPOSITORY / "docs" / "notebooks.md"

#: Its blocks one after another, each as a cell of IPython's.
OF_THE_PAGE = """
import asyncio, json, linecache, sys

In = [""]
for text in json.load(open("blocks.json")):
    name = f"/tmp/ipykernel_1/{len(In)}.py"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    In.append(text)
    exec(compile(text, name, "exec", dont_inherit=True), globals())
asyncio.run(follow())
assert experiment.status().ended == 20
assert several.best().value == 25
print("well done")
"""


def test_all_blocks_of_the_page_run(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert len(blocks) >= 6
    (tmp_path / "blocks.json").write_text(json.dumps(blocks))
    assert _run(OF_THE_PAGE, tmp_path).endswith("well done\n")
