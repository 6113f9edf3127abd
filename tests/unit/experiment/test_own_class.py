"""A tuner's class and its arguments, looked at without importing them."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from dispatcher.experiment.loader import load_experiment
from dispatcher.experiment.own_class import class_misfits
from dispatcher.experiment.problems import ExperimentFileErrors

MINE = """
    from tuners import Tuner
    raise RuntimeError("nobody imports this")

    not_a_class = 3

    def make(): ...

    class Mine(Tuner):
        def __init__(self, width, depth=2, *, rate, seed=None):
            super().__init__()

    class Child(Mine):
        pass

    class Open(Tuner):
        def __init__(self, width, **more): ...

    class Foreign(Tuner):
        pass

    @wrapped
    class Wrapped(Tuner):
        def __init__(self): ...

    class Made(metaclass=Other):
        def __init__(self): ...

    class New(Tuner):
        def __new__(cls, **arguments): ...
        def __init__(self): ...

    class Twice: ...
    class Twice:
        def __init__(self, a): ...

    Alias = Mine
"""


def _misfits(folder: Path, name: str, **arguments: Any) -> list[tuple[str | None, str, str]]:
    source = folder / "mine.py"
    source.write_text(textwrap.dedent(MINE))
    return list(class_misfits(source, name, arguments))


@pytest.mark.parametrize(
    "name, arguments, expected",
    [
        ("Mine", {"width": 1, "rate": 2}, []),
        ("Mine", {"width": 1, "depth": 2, "rate": 2, "seed": 3}, []),
        ("Mine", {"wdth": 1, "rate": 2}, [
            ("wdth", "is no argument of Mine", "did you mean 'width'?"),
            ("", "lacks 'width', which Mine needs", "add width under classArgs"),
        ]),
        ("Mine", {"width": 1}, [
            ("", "lacks 'rate', which Mine needs", "add rate under classArgs"),
        ]),
        ("Child", {"width": 1, "rate": 1, "zzz": 0}, [
            ("zzz", "is no argument of Child", "it takes: width, depth, rate, seed"),
        ]),
        ("Open", {"width": 1, "anything": 2}, []),
        ("Open", {"anything": 2}, [
            ("", "lacks 'width', which Open needs", "add width under classArgs"),
        ]),
        ("not_a_class", {}, [(None, "names 'not_a_class', which is no class: mine.py:5", "")]),
        ("make", {}, [(None, "names 'make', which is no class: mine.py:7", "")]),
    ],
)  # fmt: skip
def test_what_is_sure(tmp_path: Path, name: str, arguments: dict[str, Any], expected: Any) -> None:
    assert _misfits(tmp_path, name, **arguments) == expected


@pytest.mark.parametrize("name", ["Foreign", "Wrapped", "Made", "New", "Twice", "Alias", "Absent"])
def test_what_is_not_sure_is_left_to_the_tuners_process(tmp_path: Path, name: str) -> None:
    assert _misfits(tmp_path, name, anything=1) == []


@pytest.mark.parametrize(
    "tuner, said",
    [
        ("{className: 'mine:not_a_class', codeDirectory: .}",
         "'tuner.className' names 'not_a_class', which is no class: mine.py:5"),
        ("{className: 'mine:Mine', codeDirectory: ., classArgs: {wdth: 1, rate: 1}}",
         "'tuner.classArgs.wdth' is no argument of Mine\n  did you mean 'width'?"),
        ("{className: Mine, file: mine.py, classArgs: {width: 1}}",
         "'tuner.classArgs' lacks 'rate', which Mine needs"),
        ("{className: Mine, file: mine.py}", "'tuner' lacks 'width', which Mine needs"),
    ],
)  # fmt: skip
def test_a_file_says_it_before_anything_runs(tmp_path: Path, tuner: str, said: str) -> None:
    (tmp_path / "mine.py").write_text(textwrap.dedent(MINE))
    (tmp_path / "e.yml").write_text(f"tuner: {tuner}\ntrialCommand: 'true'\ntrialConcurrency: 1\n")
    with pytest.raises(ExperimentFileErrors) as caught:
        load_experiment(tmp_path / "e.yml")
    assert said in str(caught.value)
