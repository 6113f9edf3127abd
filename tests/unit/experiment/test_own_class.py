"""A tuner's class and its arguments, looked at without importing them."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dispatcher.experiment.loader import load_experiment
from dispatcher.experiment.problems import ExperimentFileErrors
from dispatcher.experiment.python_source import class_misfits

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
    "text",
    [
        # The name is given otherwise than by the class that is called so.
        """
        def make():
            class Mine:
                def __init__(self): ...
        class Other:
            def __init__(self, anything): ...
        globals()["Mine"] = Other
        """,
        """
        class Holder:
            def Mine(self): ...
        class Other:
            def __init__(self, anything): ...
        globals().update(Mine=Other)
        """,
        """
        import sys
        class Mine:
            def __init__(self): ...
        class Other:
            def __init__(self, anything): ...
        setattr(sys.modules[__name__], "Mine", Other)
        """,
        """
        import sys
        sys.modules[__name__].__dict__.update({"Mine": type("Mine", (), {
            "__init__": lambda self, anything: None})})
        def elsewhere():
            Mine = 5
        """,
        # The constructor is another than the one in the class.
        """
        class Mine:
            def __init__(self): ...
        def late(self, anything): ...
        Mine.__init__ = late
        """,
        """
        class Base:
            def __init__(self): ...
        def late(self, anything): ...
        class Mine(Base):
            __init__ = late
        """,
        """
        class Base:
            def __init__(self): ...
        class Mine(Base):
            if True:
                def __init__(self, anything): ...
        """,
        """
        def open_to(function):
            return lambda self, anything: function(self)
        class Mine:
            def __init__(self): ...
            __init__ = open_to(__init__)
        """,
        # A base has a say in it.
        """
        class Meta(type):
            def __call__(cls, anything):
                return super().__call__()
        class Base(metaclass=Meta): ...
        class Mine(Base):
            def __init__(self): ...
        """,
        """
        class Base:
            def __init_subclass__(cls):
                def late(self, anything): ...
                cls.__init__ = late
        class Mine(Base):
            def __init__(self): ...
        """,
        """
        from string import Formatter as Base  # of a module that is not read
        Base.__init_subclass__ = classmethod(
            lambda cls: setattr(cls, "__init__", lambda self, anything: None))
        class Mine(Base):
            def __init__(self): ...
        del Base.__init_subclass__
        """,
    ],
)
def test_no_class_that_python_builds_is_refused(tmp_path: Path, text: str) -> None:
    source = tmp_path / "mine.py"
    source.write_text(textwrap.dedent(text))
    with pytest.MonkeyPatch.context() as patch:
        made = ModuleType("mine")
        patch.setitem(sys.modules, "mine", made)
        module = vars(made)
        exec(compile(source.read_text(), str(source), "exec"), module)
        module["Mine"](anything=1)
    assert list(class_misfits(source, "Mine", {"anything": 1})) == []


def test_an_argument_that_python_renames_is_not_judged(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Mine:\n    def __init__(self, __a): ...\n")
    assert list(class_misfits(tmp_path / "mine.py", "Mine", {"_Mine__a": 1})) == []


@pytest.mark.parametrize("base", ["object", "tuners.Tuner", "Tuner", "Generic[Kind]", "Above"])
def test_bases_that_are_known_leave_the_class_as_it_is(tmp_path: Path, base: str) -> None:
    (tmp_path / "mine.py").write_text(
        "import tuners\nfrom nni.tuner import Tuner\nfrom typing import Generic\n"
        "class Above: ...\n"
        f"class Mine({base}):\n    def __init__(self): ...\n__all__ = ['Mine']\n"
    )
    assert list(class_misfits(tmp_path / "mine.py", "Mine", {"a": 1})) == [
        ("a", "is no argument of Mine", "it takes: none")
    ]


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
