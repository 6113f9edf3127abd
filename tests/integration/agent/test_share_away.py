"""While a shared weights root keeps an attempt waiting, its agent goes on."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.agent.fake_head import ROOT, FakeHead
from tests.support.workers import LOCAL
from trial_runtime import facts
from trial_runtime.facts import EndReason

#: Has the agent take every folder for a share, on which making room for a second attempt
#: takes until a file is there.
_SITE = """
import os, sys
from tests.support import hold
if "trial_runtime.agent" in sys.orig_argv:
    from trial_runtime.weights.storage import mounted
    mounted.mount_of = lambda path: mounted.Mount("/", "nfs4", {{}})
    from trial_runtime.agent.attempts import preparing
    real = preparing.make_room
    def make_room(path, attempt):
        if attempt == 2:
            open("{site}/waits", "w").close()
            hold.until("{site}/back")
        real(path, attempt)
    preparing.make_room = make_room
"""
_SAVES = """
import trial_runtime as t
path = t.get_parameters().get("save_path")
if path:
    open(path, "w").write("weights")
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(_SITE.format(site=tmp_path)))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), str(ROOT))))
    return tmp_path


@pytest.fixture
def head(site: Path, head_with: Callable[..., FakeHead]) -> FakeHead:
    """Of trial 1, a first attempt has left weights, and a second one waits for its room."""
    head = head_with(command="python train.py")
    head.script(_SAVES)
    head.until(lambda: head.life, "hello")
    order(head, 1)
    assert head.end_of(1, 1).weights.kind == "files"
    order(head, 2)
    head.until((site / "waits").exists, "the second attempt waits")
    return head


def order(head: FakeHead, attempt: int) -> None:
    head.start(1, attempt, {"save_path": "gen/1"}, save_path="gen/1")


def test_heartbeats_and_other_trials_go_on(head: FakeHead, site: Path) -> None:
    before = len(head.heartbeats)
    head.start(2)
    assert head.end_of(2).reason == EndReason.FINISHED
    head.until(lambda: len(head.heartbeats) >= before + 5, "heartbeats")
    assert not head.of(facts.AttemptEnded, 1, 2)
    (site / "back").touch()
    assert head.end_of(1, 2).weights.kind == "files"
    aside = head.weights / "gen" / "1.superseded.1"
    assert aside.read_text() == (head.weights / "gen" / "1").read_text() == "weights"


def test_an_attempt_ends_when_its_room_is_made_and_not_before(head: FakeHead, site: Path) -> None:
    """Else its successor could write where the order that is still under way will rename."""
    head.send(facts.StopAttempt(LOCAL, 1, 2, EndReason.LOST, 0.0))
    order(head, 3)
    head.start(2)
    assert head.end_of(2).reason == EndReason.FINISHED, "the orders before this one were taken"
    assert not head.of(facts.AttemptEnded, 1, 2)
    (site / "back").touch()
    assert head.end_of(1, 2).reason == EndReason.LOST
    assert head.end_of(1, 3).weights.kind == "files"
    assert not head.of(facts.AttemptStarted, 1, 2)
    words = [(w.attempt, type(w)) for w in head.words if w.trial == 1]
    assert words.index((2, facts.AttemptEnded)) < words.index((3, facts.AttemptStarted))


def test_paths_that_lead_out_are_refused_there_too(head: FakeHead) -> None:
    head.start(3, 1, {}, save_path="../outside")
    end = head.end_of(3)
    assert end.reason == EndReason.START_FAILED
    assert "does not lie below the weights root" in end.text
