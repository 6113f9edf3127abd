"""Exceptions of ``generate_parameters`` as the answers of requests."""

from __future__ import annotations

import pytest

from dispatcher.core.events import RequestEnd, RequestFailed
from dispatcher.core.ids import TrialId
from dispatcher.tuner_host.request import Request
from dispatcher.tuner_host.requests import failure
from tuners.errors import ParentFailed, UnknownParent, WaitCancelled


def _never(_event: object) -> None:
    raise AssertionError


@pytest.mark.parametrize("kind", [ParentFailed, UnknownParent, WaitCancelled])
def test_an_authors_error_that_does_not_call_ours_ends_its_request(kind: type) -> None:
    """Else the thread of the request dies of it, and the head waits for an answer for ever."""
    theirs = type("Gone", (kind,), {"__init__": lambda self, text: None})
    answer = failure(Request(3, _never), theirs("it is gone"))
    assert answer == RequestFailed(TrialId(3), RequestEnd.ABANDONED, answer.text)
    assert "it is gone" in answer.text


def test_our_own_errors_say_their_sentence_and_their_parent() -> None:
    answer = failure(Request(3, _never), ParentFailed(1, "weights missing"))
    assert answer.parent == TrialId(1)
    assert answer.text == "trial 1 cannot bequeath its weights: weights missing."
