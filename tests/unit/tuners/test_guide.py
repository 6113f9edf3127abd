"""The code of docs/tuner-authors.md that tests a tuner does what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tuners import ParentFailed

GUIDE = Path(__file__).parents[3] / "docs" / "tuner-authors.md"


def test_the_section_on_tests_runs_as_it_stands():
    text = GUIDE.read_text()
    _, _, rest = text.partition("## Testing your tuner")
    section, _, _ = rest.partition("\n## ")
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(blocks) == 3
    tuner = re.search(r"```python\n(from tuners import Tuner.*?)```", text, re.DOTALL)
    assert tuner is not None
    names = {"pytest": pytest, "ParentFailed": ParentFailed}
    for code in (tuner[1], *blocks):
        exec(code, names)
    assert len(names["search"].proposed) == 100
