"""Tracebacks of code from cells name the cell's own lines, whatever was written around them."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest

from dispatcher.tuner_host.tracebacks import describe
from tests.unit.notebook.cells import Cells, Elsewhere
from trial_runtime.agent.runners.calling import attempt_call


def _text_of(there: dict[str, Any], *arguments: Any) -> str:
    return attempt_call(lambda: there["trial"](*arguments)).text


def test_each_frame_has_its_cell_and_line(cells: Cells, elsewhere: Elsewhere) -> None:
    """Mutation: lines are those of the module that was written."""
    cells.run("import math\n\n\ndef helper(x):\n    # a comment\n    return math.sqrt(x)\n")
    cells.run("limit = 3")
    names = cells.run(
        "\ndef make(bound):\n"
        "    def trial(p):\n"
        "        if p < bound:\n"
        "            return helper(p)\n"
        "        try:\n"
        "            return helper(-1)\n"
        "        except ValueError as error:\n"
        "            raise RuntimeError('no result') from error\n"
        "    return trial\n"
        "trial = make(limit)\n"
    )
    there = elsewhere.names(names["trial"])
    text = _text_of(there, -4)
    assert "  Cell [3], line 5, in trial\n    return helper(p)\n" in text
    assert "  Cell [1], line 6, in helper\n    return math.sqrt(x)\n" in text
    assert text.endswith("ValueError: math domain error")
    chained = _text_of(there, 9)
    assert "  Cell [3], line 7, in trial\n" in chained
    assert "  Cell [3], line 9, in trial\n" in chained
    assert "bequeath_trial.py" not in text + chained


def test_a_script_is_named_by_its_file(tmp_path: Path, elsewhere: Elsewhere) -> None:
    script = tmp_path / "script.py"
    script.write_text("\n\ndef trial(p):\n    return 1 / p\n")
    module = types.ModuleType("__main__")
    exec(compile(script.read_text(), str(script), "exec"), vars(module))
    text = _text_of(elsewhere.names(vars(module)["trial"]), 0)
    assert f'File "{script}", line 4, in trial\n    return 1 / p\n' in text


def test_a_cell_that_ran_twice_is_the_newest(cells: Cells, elsewhere: Elsewhere) -> None:
    text = "def trial(p):\n    return 1 / p\n"
    cells.run(text)
    names = cells.run(text)
    assert "Cell [2], line 2, in trial" in _text_of(elsewhere.names(names["trial"]), 0)


def test_a_cell_without_a_number(cells: Cells, elsewhere: Elsewhere) -> None:
    names = cells.run("def trial(p):\n    return 1 / p\n")
    names["In"] = "the user's own"
    assert "  Cell, line 2, in trial\n" in _text_of(elsewhere.names(names["trial"]), 0)


def test_groups_of_errors(cells: Cells, elsewhere: Elsewhere) -> None:
    names = cells.run(
        "def fail():\n    raise ValueError(1)\n"
        "def trial(p):\n"
        "    try:\n        fail()\n"
        "    except ValueError as error:\n        raise ExceptionGroup('all', [error])\n"
    )
    text = _text_of(elsewhere.names(names["trial"]), 0)
    assert "Cell [1], line 7, in trial" in text
    assert "Cell [1], line 2, in fail" in text


def test_a_tuner_of_a_cell(cells: Cells, elsewhere: Elsewhere) -> None:
    names = cells.run("\nclass Mine:\n    def go(self):\n        return [][1]\n")
    made = elsewhere.names(names["Mine"])["Mine"]()
    with pytest.raises(IndexError) as raised:
        made.go()
    assert "  Cell [1], line 4, in go\n    return [][1]\n" in describe(raised.value)


def test_code_that_is_from_no_cell_is_shown_as_before() -> None:
    text = attempt_call(lambda: int("x")).text
    assert text.endswith("ValueError: invalid literal for int() with base 10: 'x'")
