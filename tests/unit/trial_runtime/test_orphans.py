"""An agent that takes over a spool says how the attempts in it ended: nobody else ever would."""

from __future__ import annotations

from pathlib import Path

from trial_runtime import facts
from trial_runtime.agent.link.outbox import Outbox
from trial_runtime.fact_wire import decode_fact
from trial_runtime.facts import EndReason


def test_what_the_agent_before_ran_is_lost_and_what_had_ended_is_left_alone(tmp_path: Path) -> None:
    before = Outbox(str(tmp_path / "spool"))
    before.end_orphans()
    before.add(facts.AttemptStarted(3, 1), urgent=False)
    before.add(facts.AttemptStarted(4, 2), urgent=False)
    before.add(facts.AttemptEnded(4, 2, EndReason.FAILED), urgent=True)
    before.spool()

    after = Outbox(str(tmp_path / "spool"))
    after.end_orphans()
    frame = after.next_frame()
    assert frame is not None
    words = [decode_fact(raw) for raw in frame.messages]
    assert [(type(w), w.trial, w.attempt) for w in words] == [
        (facts.AttemptStarted, 3, 1),
        (facts.AttemptStarted, 4, 2),
        (facts.AttemptEnded, 4, 2),
        (facts.AttemptEnded, 3, 1),
    ]
    last = words[-1]
    assert isinstance(last, facts.AttemptEnded)
    assert last.reason == EndReason.LOST
    assert after.urgent
