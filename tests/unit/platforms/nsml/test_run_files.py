"""Files of runs that are not as our program writes them: a trial can write there as well."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dispatcher.platforms.nsml.run_files import RunFiles

GOOD = '{"word": "runs", "seconds": 1, "code": null}'


@pytest.mark.parametrize("text", [
    '{"word": "runs", "seconds": "many", "code": null}', '{"word": "ended", "seconds": 1e0}',
    f'{{"word": "ended", "seconds": 1, "code": {[]}}}', "[" * 50_000, "null", "\xff",
    f'{{"word": "runs", "seconds": {"9" * 400}, "code": null}}',
])  # fmt: skip
def test_a_file_that_is_no_state_says_nothing_of_others(tmp_path: Path, text: str) -> None:
    """Mutation: one run's file ends each look at all of them."""
    folder = tmp_path / "nsml"
    folder.mkdir()
    (folder / "a-1").write_text(text, "latin-1")
    (folder / "b-1").write_text(GOOD)
    os.mkfifo(folder / "c-1")  # whoever opens it waits
    (folder / "d-1").symlink_to("/dev/zero")
    section: Any = SimpleNamespace(shared_folder=tmp_path, seen=str)
    files = RunFiles(section)
    files.look()
    assert files.of("b-1")[0] == {"word": "runs", "seconds": 1.0, "code": None}
    assert [files.of(name)[0] for name in ("a-1", "c-1", "d-1")] == [{}, {}, {}]
