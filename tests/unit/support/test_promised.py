"""Where a browser is promised, its tests are not left out for want of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.promised import PROMISED, leave_out

ROOT = Path(__file__).parents[3]

#: A test of a browser that is over if it runs.
MARKED = """\
import pytest

@pytest.mark.needs("chromium")
def test_in_a_browser():
    pass
"""


@pytest.mark.parametrize("promises", ["", "nginx", "chromiums"])
def test_what_is_not_promised_is_left_out(monkeypatch: pytest.MonkeyPatch, promises: str) -> None:
    monkeypatch.setenv(PROMISED, promises)
    with pytest.raises(pytest.skip.Exception, match="needs chromium: do this"):
        leave_out("chromium", "needs chromium: do this")


def test_what_is_promised_and_missing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROMISED, "nginx chromium")
    with pytest.raises(pytest.fail.Exception, match="promises chromium, and this test needs chr"):
        leave_out("chromium", "needs chromium: do this")


@pytest.mark.parametrize("promised", [True, False])
def test_a_marked_test_without_a_browser_fails_where_one_is_promised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, promised: bool
) -> None:
    """Mutation: a marker that nothing looks at; a run without a browser that ends well."""
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_runtest_setup\n")
    (tmp_path / "test_it.py").write_text(MARKED)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = needs\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv(PROMISED, "chromium" if promised else "")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ("1 error" if promised else "1 skipped") in done.stdout, done.stdout + done.stderr
    assert done.returncode == int(promised)


def test_a_landing_promises_a_browser_once_it_is_installed() -> None:
    """Mutation: a landing whose tests of the page are all left out."""
    script = (ROOT / ".ci" / "run").read_text()
    (promise,) = re.finditer(rf"^export {PROMISED}=(.*)$", script, re.M)
    assert "chromium" in promise[1].split()
    assert script.index('wait "$enabling"\n') < promise.start() < script.index("make test")
    packages = (ROOT / "tests" / "system" / "enable.sh").read_text()
    assert re.search(r"^packages=\"[^\"]*\bchromium chromium-driver\b", packages, re.M)
