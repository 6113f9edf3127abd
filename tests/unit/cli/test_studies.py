"""Commands that look at a study, which only its own program leads."""

from __future__ import annotations

from pathlib import Path

import pytest

import bequeath as bq
from tests.unit.cli.conftest import Shell


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bq.Study:
    monkeypatch.setenv("BEQUEATH_HOME", str(tmp_path / "home"))
    study = bq.Study({"x": bq.uniform(0, 1)}, folder=tmp_path / "first", tuner="Random")
    study.tell(study.ask(), 1)
    study.ask()
    return study


@pytest.mark.parametrize("command", ["status", "why", "stop", "top", "trial kill 1 -e"])
@pytest.mark.parametrize("led", [True, False])
def test_no_command_says_that_resume_leads_a_study(
    study: bq.Study, bequeath: Shell, command: str, led: bool
) -> None:
    """Mutation: a study is taken for an experiment whose head is gone, or is silent."""
    if led:
        study.flush()
    else:
        study.close()
    said = bequeath(*command.split(), str(study.folder))
    text = said.out + said.err
    assert "resume" not in text
    assert "does not answer" not in text
    if not led:
        assert f"bq.Study(folder={str(study.folder)!r})" in text.replace("\n", "")
    elif command in ("why", "stop"):
        assert "study" in text
    study.close()
