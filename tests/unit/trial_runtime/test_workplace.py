"""Each attempt in a folder of its own, with the code in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from trial_runtime.agent.runners.workplace import make_workplace


def test_code_is_found_and_what_is_written_is_ones_own(tmp_path: Path) -> None:
    code = tmp_path / "code"
    (code / "data").mkdir(parents=True)
    (code / "data" / "x.txt").write_text("7")
    (code / "beside.py").write_text("SEVEN = int(open('data/x.txt').read())\n")
    (code / "trial.py").write_text("import beside\nopen('out.txt', 'w').write(str(beside.SEVEN))\n")
    places = [make_workplace(str(code), str(tmp_path / name / "work")) for name in ("1", "2")]
    for place in places:
        subprocess.run([sys.executable, "trial.py"], cwd=place, check=True)
        assert (Path(place) / "out.txt").read_text() == "7"
    assert {p.name for p in code.iterdir()} - {"__pycache__"} == {"data", "beside.py", "trial.py"}


def test_making_it_again_changes_nothing(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "a").write_text("of the code")
    place = Path(make_workplace(str(code), str(tmp_path / "work")))
    (place / "a").unlink()
    (place / "a").write_text("mine")
    make_workplace(str(code), str(place))
    assert (place / "a").read_text() == "mine"
    assert (code / "a").read_text() == "of the code"
