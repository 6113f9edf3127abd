"""What a notebook has changed since a definition ran reaches the trial, too."""

from __future__ import annotations

import linecache

import pytest

from dispatcher.errors import UserError
from tests.unit.notebook.cells import Cells, Elsewhere


def test_defaults_have_their_first_values(cells: Cells, elsewhere: Elsewhere) -> None:
    """Mutation: the text of a default runs again, with what its variable is by now: both functions
    of the loop get the last power."""
    names = cells.run(
        "import numpy as np\n"
        "X, functions, lambdas = np.ones(3), [], []\n"
        "for power in (1, 2):\n"
        "    def trial(p, power=power, n=len(X) + power, data=X, *, by=power, kept=5):\n"
        "        return power, n, data.sum(), by, kept, scale(1)\n"
        "    functions.append(trial)\n"
        "    lambdas.append(lambda x, k=power: x * k)\n"
        "scale, X = lambdas[0], np.zeros(3)\n"
    )
    for one in names["functions"]:
        assert elsewhere.names(one)["trial"]({}) == one({})
    assert names["functions"][0]({}) == (1, 4, 3.0, 1, 5, 1)


def test_unchanged_defaults_stay_text(cells: Cells, elsewhere: Elsewhere) -> None:
    names = cells.run("X = [1]\ndef trial(p, x=X, y=(), z=-1):\n    return x, y, z\n")
    assert "__defaults__" not in elsewhere.write(names["trial"]).read_text()


def test_attributes_that_later_cells_have_set(cells: Cells, elsewhere: Elsewhere) -> None:
    """Mutation: a class is its text, and the trial learns with the rate of the first cell."""
    cells.run(
        "import threading\nimport numpy as np\n"
        "class Settings:\n"
        "    rate = 0.1\n    layers: list = [1]\n    same = 3\n    _own = 1\n"
        "    def step(self):\n        return 1\n"
        "    again = step\n"
        "    def twice(self):\n        step = self.step()\n        return 2 * step\n"
    )
    cells.run(
        "def faster(self):\n    return 10 * Settings.rate\n"
        "Settings.rate = 0.5\nSettings.layers.append(2)\nSettings.data = np.arange(3)\n"
        "Settings.step = faster\nSettings.half = lambda self: self.step() / 2\n"
        "Settings.lock = threading.Lock()\n"
    )
    names = cells.run(
        "def trial(p):\n"
        "    s = Settings()\n"
        "    return (s.rate, s.layers, s.data.sum(), s.step(), s.twice(), s.half(), s.again())\n"
    )
    written = elsewhere.write(names["trial"])
    there = elsewhere.imported(written)
    assert there["trial"]({}) == names["trial"]({}) == (0.5, [1, 2], 3, 5.0, 10.0, 2.5, 1)
    assert "Settings.same" not in written.read_text()
    assert "Settings.again" not in written.read_text()


def test_classes_of_libraries_making_stay_as_they_are(cells: Cells, elsewhere: Elsewhere) -> None:
    """Mutation: variables of the function that has made a dataclass are taken for the user's."""
    cells.run(
        "import enum\nfrom dataclasses import dataclass, field\nfrom typing import NamedTuple\n"
        "class Colour(enum.Enum):\n    RED = 1\n    BLUE = 2\n"
        "@dataclass(slots=True)\nclass Point:\n    x: int = 1\n"
        "    y: list = field(default_factory=list)\n"
        "class Pair(NamedTuple):\n    a: int = 1\n    b: str = 'x'\n"
        "class Outer:\n    class Inner:\n        n = 1\n"
        "    @property\n    def m(self):\n        return 2\n"
    )
    names = cells.run(
        "def trial(p):\n    return Colour(2).name, Point().y, Pair().b, Outer.Inner.n, Outer().m\n"
    )
    assert elsewhere.names(names["trial"])["trial"]({}) == ("BLUE", [], "x", 1, 2)


def test_a_changed_attribute_that_cannot_travel_is_named(
    cells: Cells, elsewhere: Elsewhere
) -> None:
    cells.run("import threading\nclass Settings:\n    lock = None\n")
    cells.run("Settings.lock = threading.Lock()\n")
    names = cells.run("def trial(p):\n    return Settings.lock is None\n")
    with pytest.raises(UserError, match="'Settings' has as its attribute 'lock' \\(lock\\)"):
        elsewhere.write(names["trial"])


def test_a_global_that_is_only_counted_up(cells: Cells, elsewhere: Elsewhere) -> None:
    """Mutation: only names that are read by themselves are looked for: NameError in the trial."""
    names = cells.run(
        "calls = 3\nrows = []\n"
        "def trial(p):\n    global calls\n    calls += 1\n"
        "    rows.append(1)\n    return len(rows)\n"
    )
    there = elsewhere.names(names["trial"])
    assert there["trial"]({}) == 1
    assert there["calls"] == 4


def test_cells_below_a_magic(cells: Cells, elsewhere: Elsewhere) -> None:
    """Mutation: the lines of `%%time` are not looked for; or any text of the same name will do."""
    body = "\nSCALE = 2\ndef trial(p):\n    return SCALE / p\n"
    exec(compile(body.lstrip("\n"), "<timed exec>", "exec", dont_inherit=True), cells.names)
    cells.names["In"] += [
        f"get_ipython().run_cell_magic('time', '', {body!r})\n",
        f"get_ipython().run_cell_magic('time', '', {body.replace('/', '*')!r})\n",
    ]
    written = elsewhere.write(cells.names["trial"])
    assert elsewhere.imported(written)["trial"](4) == 0.5
    assert "'Cell [1]'" in written.read_text()
    there = elsewhere.imported(written)["__bequeath_cells__"]
    [(first, _, _, shift)] = there
    assert first + shift == 4  # its line in the cell, with the magic and the blank line


def test_lines_that_ipython_counts_otherwise(cells: Cells, elsewhere: Elsewhere) -> None:
    """A form feed, or a U+2028 that was pasted, ends a line for IPython and none for Python.
    Mutation: only the lines that IPython keeps are looked at."""
    text = "SIGN = 'a\u2028b'\n\x0cdef trial(p):\n    return SIGN, 'c\u2028d'\n"
    exec(compile(text, "cell", "exec", dont_inherit=True), cells.names)
    cells.names["In"].append(text)
    linecache.cache["cell"] = (len(text), None, [f"{one}\n" for one in text.splitlines()], "cell")
    written = elsewhere.write(cells.names["trial"])
    assert elsewhere.imported(written)["trial"]({}) == ("a\u2028b", "c\u2028d")
    assert "'Cell [1]'" in written.read_text()
