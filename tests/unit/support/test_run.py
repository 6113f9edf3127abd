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
    # Others' plugins are twice the work of such a run, and nothing here is about them.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return tmp_path / "tests"


def _write(folder: Path, text: str) -> None:
    folder.mkdir(parents=True)
    (folder / "test_it.py").write_text(text)


def test_the_last_lines_name_each_failure_with_its_error(
    folders: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _write(folders / "faults", FLAKY)
    assert runner.main(["--again", "8"]) == 1
    last = capfd.readouterr().out.splitlines()[-5:]
    name = "tests/faults/test_it.py::test_"
    assert last[0] == "2 passed, 2 failed, 0 skipped, 1 unstable"
    assert last[1] == (
        f"unstable (failed, then passed alone): {name}only_the_first_time: RuntimeError: starved"
    )
    assert last[2].startswith(f"failed: {name}always: AssertionError: never the same xxx")
    assert len(last[2]) == runner.WIDTH
    assert last[3] == f"failed: {name}fixture: [teardown] OSError: cannot clear up"
    assert last[4] == "no test was left out"


def test_too_many_failures_are_no_bad_luck(folders: Path) -> None:
    _write(folders / "faults", FLAKY)
    assert runner.main(["--again", "2"]) == 1
    assert runner.main(["--again", "2"]) == 1  # by now the flaky one passes
    (folders / "faults/test_it.mark").unlink()
    first = runner.Run("faults", str(folders / "faults"))
    assert len(first.failed) == 3
    assert runner.pass_alone([first], 2) == {}
    assert runner.pass_alone([first], 3, limit_s=0.0) == {}  # there is no time for it


def test_the_longest_folder_runs_in_two_parts_each_test_once(
    folders: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Mutations: a folder in both parts, or in none; no second look for the second part."""
    for name in ("agent", "tuners"):
        _write(folders / "integration" / name, FLAKY.replace("test_always", f"test_in_{name}"))
        (folders / "integration" / name / "__init__.py").touch()
    assert runner.main(["--again", "8"]) == 1
    out = capfd.readouterr().out.splitlines()
    counts = [line for line in out if " s  tests/integration" in line]
    assert [line.split("tests/")[1].split()[0] for line in counts] == [
        "integration",
        "integration/…",
    ]
    assert all("2 failed, 1 passed, 1 error" in line for line in counts)
    assert "4 passed, 4 failed, 0 skipped, 2 unstable" in out


@pytest.mark.parametrize("name", sorted(runner.HALVES))
def test_the_second_part_of_a_folder_is_there(name: str) -> None:
    folders = {path.name for path in (ROOT / "tests" / name).iterdir()}
    assert set(runner.HALVES[name]) <= folders


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
    last = capfd.readouterr().out.splitlines()[-9:]
    assert last[0].startswith("0 passed, 7 failed")
    assert last[1] == "failed: tests/unit: pytest broke off with code 3"
    assert last[2] == "failed: tests/faults: pytest broke off with code 1"
    assert last[3] == "failed: tests/sim: pytest broke off with code 2"
    assert "No module named 'nothing_of_this_name'" in last[-2]


def test_failures_without_end_are_cut(folders: Path) -> None:
    cases = "import pytest\n@pytest.mark.parametrize('n', range(60))\ndef test_no(n):\n    assert 0"
    _write(folders / "unit", cases)
    lines, good = runner.closing_lines([runner.Run("unit", str(folders / "unit"))], {})
    assert not good
    assert sum(line.startswith("failed: ") for line in lines) == runner.MOST_NAMED
    assert lines[-2] == "and 20 more"


LEFT_OUT = """\
import pytest
from tests.support.failures import ENABLES

@pytest.mark.skipif(True, reason=f"needs sshd: {ENABLES}")
@pytest.mark.parametrize("n", range(3))
def test_with_a_package(n):
    pass

def test_found_out_late():
    pytest.skip(f"needs bubblewrap: {ENABLES}")
"""
OTHERS = """\
import pytest

@pytest.mark.parametrize("n", range(2))
def test_with_a_gpu(n):
    pytest.skip("needs a GPU")

@pytest.mark.skipif(True, reason="needs root")
def test_as_root():
    pass

@pytest.mark.xfail(reason="nobody counts this")
def test_known():
    assert False
"""


def last_line(capfd: pytest.CaptureFixture[str]) -> str:
    return capfd.readouterr().out.splitlines()[-1]


def test_the_last_line_says_what_was_left_out_and_how_to_have_it(
    folders: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _write(folders / "unit", "def test_is_run():\n    pass\n")
    assert runner.main([]) == 0
    assert last_line(capfd) == "no test was left out"
    _write(folders / "system", LEFT_OUT)
    assert runner.main([]) == 0
    assert last_line(capfd) == "4 tests left out: sudo make enable"
    _write(folders / "faults", OTHERS)
    assert runner.main([]) == 0
    why = "3 more: 2 of them: needs a GPU, 1 of them: needs root"
    assert last_line(capfd) == f"4 tests left out: sudo make enable; {why}"
    assert runner.main(["faults"]) == 0
    assert last_line(capfd) == why.replace("more", "tests left out, none for want of packages")


def test_a_quick_round_runs_what_there_is() -> None:
    words = [word for words in runner.QUICK.values() for word in words]
    for word in words:
        assert (runner.HERE / word.removeprefix("--ignore=")).exists(), word
    left_aside = {word.rpartition("/")[2] for word in words if word.startswith("--ignore=")}
    assert {f"unit/{name}" for name in left_aside} <= set(words)


def test_whatever_packages_would_enable_says_so_in_one_way() -> None:
    """Else the last line would not count it."""
    said = []
    for file in runner.HERE.rglob("*.py"):
        if file != Path(__file__) and file.name not in ("failures.py", "run.py"):
            said += [file] if "make enable" in file.read_text().replace("``make", "") else []
    assert said == []
