"""The runner of all tests: what its last lines say, and which tests get a second look."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import run as runner

ROOT = Path(runner.__file__).parents[1]

FLAKY = """\
import pathlib, pytest
mark = pathlib.Path(__file__).with_suffix(".mark")

def test_only_the_first_time():
    if not mark.exists():
        mark.touch()
        raise RuntimeError("starved\\nand more words")

def test_always():
    assert {"a": 1} == {"a": 2}, "never the same " + "x" * 300

@pytest.fixture
def broken():
    yield
    raise OSError("cannot clear up")

def test_fixture(broken):
    pass
"""


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with tests of its own."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.setattr(runner, "HERE", tmp_path / "tests")
    monkeypatch.setenv("PYTHONPATH", os.fspath(ROOT))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    return tmp_path / "tests"


def _write(folder: Path, text: str) -> None:
    folder.mkdir(parents=True)
    (folder / "test_it.py").write_text(text)


def test_the_last_lines_name_each_failure_with_its_error(
    folders: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _write(folders / "faults", FLAKY)
    assert runner.main(["--again", "8"]) == 1
    last = capfd.readouterr().out.splitlines()[-4:]
    name = "tests/faults/test_it.py::test_"
    assert last[0] == "2 passed, 2 failed, 0 skipped, 1 unstable"
    assert last[1] == (
        f"unstable (failed, then passed alone): {name}only_the_first_time: RuntimeError: starved"
    )
    assert last[2].startswith(f"failed: {name}always: AssertionError: never the same xxx")
    assert len(last[2]) == runner.WIDTH
    assert last[3] == f"failed: {name}fixture: [teardown] OSError: cannot clear up"


def test_too_many_failures_are_no_bad_luck(folders: Path) -> None:
    _write(folders / "faults", FLAKY)
    assert runner.main(["--again", "2"]) == 1
    assert runner.main(["--again", "2"]) == 1  # by now the flaky one passes
    (folders / "faults/test_it.mark").unlink()
    first = runner.Run("faults", str(folders / "faults"))
    assert len(first.failed) == 3
    assert runner.pass_alone([first], 2) == {}
    assert runner.pass_alone([first], 3, limit_s=0.0) == {}  # there is no time for it


def test_a_rule_gets_no_second_look(folders: Path) -> None:
    _write(folders / "unit", FLAKY)
    assert runner.main(["--again", "8"]) == 1
    assert list(runner.pass_alone([runner.Run("unit", str(folders / "unit"))], 8)) == []


def test_what_does_not_end_is_interrupted(folders: Path) -> None:
    _write(folders / "faults", "import time\ndef test_hangs():\n    time.sleep(600)\n")
    run = runner.Run("faults", str(folders / "faults"), limit_s=3.0)
    assert run.code != 0
    assert run.seconds < 300


def test_a_run_that_breaks_down_is_a_failure(
    folders: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _write(folders / "unit", "import os\ndef test_dies():\n    os._exit(3)\n")
    _write(folders / "faults", FLAKY + "\ndef test_dies():\n    import os\n    os._exit(1)\n")
    _write(folders / "sim", "import nothing_of_this_name\n")
    assert runner.main(["--again", "8"]) == 1
    last = capfd.readouterr().out.splitlines()[-8:]
    assert last[0].startswith("0 passed, 7 failed")
    assert last[1] == "failed: tests/unit: pytest broke off with code 3"
    assert last[2] == "failed: tests/sim: pytest broke off with code 2"
    assert last[3] == "failed: tests/faults: pytest broke off with code 1"
    assert "No module named 'nothing_of_this_name'" in last[4]


def test_failures_without_end_are_cut(folders: Path) -> None:
    cases = "import pytest\n@pytest.mark.parametrize('n', range(60))\ndef test_no(n):\n    assert 0"
    _write(folders / "unit", cases)
    lines, good = runner.closing_lines([runner.Run("unit", str(folders / "unit"))], {})
    assert not good
    assert sum(line.startswith("failed: ") for line in lines) == runner.MOST_NAMED
    assert lines[-1] == "and 20 more"
