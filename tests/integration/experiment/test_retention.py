"""Retention while an experiment runs: what nobody needs goes, and nobody misses it."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from dispatcher.cli.main import app
from dispatcher.core import events as e
from dispatcher.core.model import Phase
from dispatcher.notices import NoticeKind
from tests.integration.experiment.conftest import Lab
from tests.support.checker import check_store


def test_last_generations_only_and_no_child_is_hurt(lab: Lab) -> None:
    folder = lab.create(function="slow_child", maxTrialNumber=40, retention={"lastGenerations": 2})
    phase, notices = lab.run(folder)
    assert phase is Phase.COMPLETED, notices
    assert check_store(folder / "journal.sqlite") == []
    assert not [n for n in notices if n.kind is NoticeKind.RETENTION]
    events = lab.rows(folder)
    assert [x for x in events if isinstance(x, e.RemovalAnnounced)]
    finals = [x for x in events if isinstance(x, e.FinalReported)]
    assert len(finals) == 40, "every child found its parent's weights"
    kept = {p.name for p in (folder / "weights" / "trials").iterdir()}
    assert len(kept) < 40
    words = ["weights", "gc", folder.name, "--folder", str(folder.parent), "--dry-run", "--json"]
    left = CliRunner().invoke(app, words)
    assert json.loads(left.stdout)["weights"] == [], "also of those that ended last"


def test_who_goes_on_with_a_completed_experiment_is_warned_of_what_went(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it is completed no trial to come needs anything but the best."""
    folder = lab.create(maxTrialNumber=6, retention="ancestors-of-live")
    phase, notices = lab.run(folder)
    assert phase is Phase.COMPLETED, notices
    words = ["experiment", "update", "maxTrialNumber", "8", "--experiment", str(folder)]
    assert not [n for n in notices if n.kind is NoticeKind.RETENTION]
    updated = CliRunner().invoke(app, words)
    assert updated.exit_code == 0, updated.output
    assert "of 6 trials are gone" in " ".join(updated.stderr.split())
    monkeypatch.setattr("dispatcher.experiments.processes.start_in_background", lambda *_, **__: 1)
    resumed = CliRunner().invoke(app, ["resume", "--background", str(folder)])
    assert "of 6 trials are gone" in " ".join(resumed.stderr.split())
    for warned in (True, False):
        _, notices = lab.run(folder)
        texts = [n.text for n in notices if n.kind is NoticeKind.RETENTION]
        assert [("weights of 5 of 6 trials are gone" in text) for text in texts] == [True] * warned
