"""Faults of what is told about a refused event."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_STORY = ("tests/unit/head/test_story.py",)
_STEPS = ("tests/unit/store/test_stepping.py",)

TELLING: tuple[Mutation, ...] = (
    Mutation(
        "a-fault-of-our-own-is-blamed-on-a-peer",
        9,
        "a head goes on with a state that contradicts itself",
        "dispatcher/ports.py",
        "        return bool(self.owner) and isinstance(self.error, InvalidTransition)\n",
        "        return bool(self.owner)\n",
        _STORY,
    ),
    Mutation(
        "a-report-leaves-out-what-is-in-no-row-yet",
        9,
        "the command that is to show a refusal shows another one, or none",
        "dispatcher/store/replay/refused.py",
        '        "batch": [_named(entry.at, entry.event) for entry in refusal.batch],\n',
        '        "batch": [],\n',
        _STORY,
    ),
    Mutation(
        "a-report-holds-secrets",
        9,
        "a password that a trial has printed is sent to us with a report",
        "dispatcher/store/replay/refused.py",
        "            return mask(value)\n",
        "            return value\n",
        _STORY,
    ),
    Mutation(
        "reports-are-kept-for-ever",
        9,
        "a peer that says nonsense for weeks fills the disk with reports",
        "dispatcher/store/replay/refused.py",
        "        old.unlink()\n",
        "        pass\n",
        _STORY,
    ),
    Mutation(
        "a-replay-goes-on-behind-a-refusal",
        9,
        "what is shown as a trial's standing never was",
        "dispatcher/store/replay/stepping.py",
        "        if stepped.refused:\n            break\n",
        "",
        _STEPS,
    ),
    Mutation(
        "a-replay-begins-at-a-base-that-is-behind-what-was-asked-for",
        9,
        "the standing after a later row is shown as that of the row that was asked for",
        "dispatcher/store/replay/stepping.py",
        "        if until is not None and until < base.number:\n",
        "        if False:\n",
        _STEPS,
    ),
)
