"""An agent that takes over a spool says how the attempts in it ended: nobody else ever would."""

from __future__ import annotations

from pathlib import Path

from trial_runtime import wire
from trial_runtime.agent.link.outbox import Outbox


def test_what_the_agent_before_ran_is_lost_and_what_had_ended_is_left_alone(tmp_path: Path) -> None:
    before = Outbox(str(tmp_path / "spool"))
    before.end_orphans()
    before.add(wire.Started(3, 1), urgent=False)
    before.add(wire.Started(4, 2), urgent=False)
    before.add(wire.Ended(4, 2, wire.FAILED), urgent=True)
    before.spool()

    after = Outbox(str(tmp_path / "spool"))
    after.end_orphans()
    frame = after.next_frame()
    assert frame is not None
    words = [wire.decode_word(raw) for raw in frame.messages]
    assert [(type(w), w.trial, w.attempt) for w in words] == [
        (wire.Started, 3, 1),
        (wire.Started, 4, 2),
        (wire.Ended, 4, 2),
        (wire.Ended, 3, 1),
    ]
    last = words[-1]
    assert isinstance(last, wire.Ended)
    assert last.reason == wire.LOST
    assert after.urgent
