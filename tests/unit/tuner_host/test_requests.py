"""What a request says, and when, seen from the snapshots."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dispatcher.core.events import Proposed, RequestFailed
from dispatcher.tuner_host.gate import Gate
from dispatcher.tuner_host.messages import FRAME_BYTES, encode
from dispatcher.tuner_host.proposals import ProposalRules
from dispatcher.tuner_host.request import Request
from dispatcher.tuner_host.requests import Requests
from dispatcher.tuner_host.run_token import RunToken
from tuners.errors import WaitCancelled


def _propose(trial: int) -> dict[str, int]:
    return {"x": trial}


def _refuse(trial: int) -> dict[str, int]:
    raise ValueError(trial)


@pytest.mark.parametrize("generate, kind", [(_propose, Proposed), (_refuse, RequestFailed)])
def test_a_state_never_overtakes_the_answer_that_it_knows_of(
    tmp_path: Path, generate: Any, kind: type
) -> None:
    """A state that knows of a proposal which the journal has after it counts it twice at the next
    restore. Mutation: the request gives up the run token before its answer is said."""
    run_token = RunToken()
    said: list[tuple[object, bool]] = []

    def say(event: object) -> None:
        at_rest = run_token.try_pause()
        said.append((event, at_rest))
        if at_rest:
            run_token.resume()

    calls: Any = SimpleNamespace(generate=generate, remember=lambda where, text: None)
    requests = Requests(
        calls, Gate(run_token), run_token, ProposalRules(str(tmp_path)), lambda request: None
    )
    request = Request(7, say)
    assert run_token.may_enter(request)
    requests.run(request)
    ((event, at_rest),) = said
    assert isinstance(event, kind)
    assert not at_rest, "a state could have been taken before this was said"
    assert run_token.try_pause(), "and can be from now on"


class NoMoreTrialError(Exception):
    """As an author defines it."""


@pytest.mark.parametrize(
    "raised",
    [
        NoMoreTrialError("x" * 9_000_000),
        WaitCancelled("x" * 9_000_000),
        ValueError("x" * 9_000_000),
    ],
)
def test_an_answer_always_fits_a_message(tmp_path: Path, raised: Exception) -> None:
    """A larger one would close the connection, and the request would stay open for ever."""
    run_token = RunToken()
    said: list[Any] = []

    def generate(trial: int) -> Any:
        raise raised

    calls: Any = SimpleNamespace(generate=generate, remember=lambda where, text: None)
    requests = Requests(
        calls, Gate(run_token), run_token, ProposalRules(str(tmp_path)), lambda request: None
    )
    requests.run(Request(7, said.append))
    (frame,) = encode(said)
    assert len(frame) < FRAME_BYTES
    assert len(said[0].text) < 20_000
