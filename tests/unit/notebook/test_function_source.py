"""Functions of a notebook become modules; what cannot travel is refused by name."""

from __future__ import annotations

import functools
import linecache
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import UserError
from dispatcher.notebook.function_source import (
    check_stands_alone,
    import_folder,
    is_importable,
    module_source,
)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Runs text as a notebook cell does: in ``__main__``, its lines kept in linecache."""
    number = iter(range(100))
    module = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)

    def run(text: str) -> dict[str, Any]:
        name = f"<cell {next(number)}>"
        lines = [f"{line}\n" for line in text.split("\n")]
        linecache.cache[name] = (len(text), None, lines, name)
        exec(compile(text, name, "exec"), module.__dict__)
        return module.__dict__

    return run


def _again(source: str) -> dict[str, Any]:
    """What another process gets when it imports the module."""
    names: dict[str, Any] = {"__name__": "written", "__file__": "written.py"}
    exec(source, names)
    return names


def test_what_a_function_uses_comes_along(cell: Callable[[str], dict[str, Any]]) -> None:
    cell("import math\nfrom pathlib import Path\nfrom functools import partial as part\n")
    cell("FACTOR = 3\nTABLE = {'a': [1, 2.5, None]}\nHERE = Path('data')\nunused = object()\n")
    cell("def helper(x):\n    return x * FACTOR\n")
    names = cell(
        "def trial(parameters):\n"
        "    total = sum(helper(v) for v in TABLE['a'] if v)\n"
        "    return part(max, total)(math.floor(parameters['x'])), str(HERE)\n"
    )
    written = module_source(check_stands_alone(names["trial"], "trial")).text
    assert "unused" not in written
    assert _again(written)["trial"]({"x": 1.5}) == names["trial"]({"x": 1.5}) == (10.5, "data")


def test_a_class_comes_with_its_base_and_its_neighbours(
    cell: Callable[[str], dict[str, Any]],
) -> None:
    cell(
        "from tuners import Tuner\n\n"
        "class Base(Tuner):\n    def greet(self):\n        return name()\n"
    )
    cell("def name():\n    return 'base'\n")
    names = cell(
        "class Mine(Base):\n"
        "    def __init__(self, n=1):\n        super().__init__()\n        self.n = n\n"
        "    def generate_parameters(self, parameter_id, **kwargs):\n        return {'n': self.n}\n"
        "    def receive_trial_result(self, *args, **kwargs):\n        pass\n"
    )
    again = _again(module_source(check_stands_alone(names["Mine"], "tuner")).text)
    made = again["Mine"](n=4)
    assert made.generate_parameters(0) == {"n": 4}
    assert made.greet() == "base"


def test_functions_that_call_each_other(cell: Callable[[str], dict[str, Any]]) -> None:
    cell("def even(n):\n    return n == 0 or odd(n - 1)\n")
    names = cell("def odd(n):\n    return n != 0 and even(n - 1)\n")
    assert _again(module_source(names["odd"]).text)["odd"](7)


def test_the_newest_definition_counts(cell: Callable[[str], dict[str, Any]]) -> None:
    cell("def trial(p):\n    return 1\n")
    names = cell("def trial(p):\n    return 2\n")
    assert _again(module_source(names["trial"]).text)["trial"]({}) == 2


def test_a_global_that_cannot_travel_is_named(cell: Callable[[str], dict[str, Any]]) -> None:
    cell("import threading\nlock = threading.Lock()\n")
    names = cell("def trial(p):\n    with lock:\n        return 1\n")
    with pytest.raises(UserError, match="'trial' uses the global 'lock' \\(lock\\)"):
        module_source(names["trial"])


def test_a_local_may_be_called_like_a_global(cell: Callable[[str], dict[str, Any]]) -> None:
    cell("data = object()\n")
    names = cell("def trial(p):\n    data = [1]\n    return len(data)\n")
    assert _again(module_source(names["trial"]).text)["trial"]({}) == 1


def test_a_function_without_source(cell: Callable[[str], dict[str, Any]]) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec("def trial(p):\n    return 1\n", names)
    with pytest.raises(UserError, match="source of 'trial' is not to be had"):
        module_source(names["trial"])


def test_what_cannot_stand_alone_is_refused() -> None:
    outside = 3

    def inner(parameters: object) -> int:
        return outside

    class Thing:
        def __call__(self, parameters: object) -> int:
            return 1

    for thing, word in (
        (Thing, "is no function"),
        (lambda p: 1, "a lambda"),
        (Thing(), "an object of Thing"),
        (functools.partial(inner), "an object of partial"),
        (Thing().__call__, "an object of method"),
    ):
        with pytest.raises(UserError, match=word):
            check_stands_alone(thing, "trial")


def test_a_module_on_disk_is_named_and_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    package = tmp_path / "some_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text("def main(p):\n    return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    main = importlib.import_module("some_package.train").main
    assert is_importable(main)
    assert import_folder("some_package.train") == tmp_path
    assert import_folder("some_package") == tmp_path
    for name in ("some_package.train", "some_package"):
        monkeypatch.delitem(sys.modules, name)
