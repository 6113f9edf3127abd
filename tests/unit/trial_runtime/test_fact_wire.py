"""Facts and orders there and back, and what strangers may not write into them."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from tests.support.old_python import WHY_NOT, old_python
from trial_runtime import facts
from trial_runtime.fact_wire import (
    ORDER_LAYOUTS,
    _form,
    array_of,
    decode_fact,
    encode_fact,
    order_of,
)
from trial_runtime.facts import EndReason
from trial_runtime.trial_wire import WireError

ROOT = Path(__file__).parents[3]
TRIAL = facts.TrialId(17)
HERE = facts.WorkerId("here")
WEIGHTS = facts.Weights("ab", "files", 9)

FACTS = [
    facts.AttemptStarted(TRIAL, 1),
    facts.AttemptStarted(TRIAL, 1, 77),
    facts.MetricReported(TRIAL, 1, 1, "0.5"),
    facts.FinalReported(TRIAL, 1, 2, '{"default":1}'),
    facts.WeightsPublished(TRIAL, 1, 3, WEIGHTS),
    facts.VersionOffered(TRIAL, 1, 4, "omega", 2, "omega/17.1-4", "ef", 9),
    facts.AttemptEnded(TRIAL, 1, EndReason.FINISHED, 0),
    facts.AttemptEnded(TRIAL, 2, EndReason.FAILED, -1, None, "text", WEIGHTS, 0.5, 1.5),
    facts.AttemptEnded(TRIAL, 3, EndReason.SIGNALLED, None, 11, weights=WEIGHTS),
]

ORDERS = [
    facts.StartAttempt(HERE, TRIAL, 2, "{}"),
    facts.StartAttempt(
        HERE, TRIAL, 2, "{}", "t/17", "t/3", "ab", "files", ("GPU-a",), 1.5, 1 << 30, 0.5,
        (facts.Pinned("omega", 3, "omega/3.1-1", "cd"),),
    ),
    facts.StopAttempt(HERE, TRIAL, 2, EndReason.PREEMPTED, 1.5),
]  # fmt: skip


def array(fact: facts.AttemptFact) -> list[object]:
    values: list[object] = msgspec.msgpack.decode(encode_fact(fact))
    return values


def decoded(values: list[object]) -> facts.AttemptFact:
    return decode_fact(msgspec.msgpack.encode(values))


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: type(fact).__name__)
def test_facts_there_and_back(fact: facts.AttemptFact) -> None:
    assert decode_fact(encode_fact(fact)) == fact


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: type(order).__name__)
def test_orders_there_and_back(order: facts.AttemptOrder) -> None:
    raw = msgspec.msgpack.encode(array_of(order))
    row = msgspec.msgpack.decode(raw, type=ORDER_LAYOUTS[0] | ORDER_LAYOUTS[1])
    assert order_of(row, HERE) == order
    assert b"here" not in raw


def test_every_kind_has_a_tag_of_its_own() -> None:
    kinds = facts.AttemptFact.__args__  # type: ignore[attr-defined]
    assert {type(fact) for fact in FACTS} == set(kinds)
    assert len({array(fact)[0] for fact in FACTS}) == len(kinds)


def test_an_array_names_its_kind_and_lays_weights_flat() -> None:
    assert array(FACTS[2]) == ["m", 17, 1, 1, "0.5"]
    assert array(FACTS[4]) == ["w", 17, 1, 3, "ab", "files", 9]
    assert array(FACTS[6]) == ["e", 17, 1, "finished", 0, None, "", 0.0, 0.0, "", "", 0]
    assert array(FACTS[8])[-3:] == ["ab", "files", 9]
    assert array(FACTS[7])[6:] == ["text", 0.5, 1.5, "ab", "files", 9]  # not the type's order


def test_fields_that_an_older_agent_does_not_send_have_their_defaults() -> None:
    assert decoded(["s", 17, 1]) == FACTS[0]
    end = facts.AttemptEnded(TRIAL, 1, EndReason.FINISHED)
    assert decoded(["e", 17, 1, "finished"]) == end


def test_fields_that_a_later_agent_sends_are_passed_over() -> None:
    assert decoded(["m", 17, 1, 1, "0.5", "of later"]) == FACTS[2]


@pytest.mark.parametrize(
    "values",
    [
        ["?", 17, 1],
        ["m", 17, 1, 1],
        ["m", -1, 1, 1, "0.5"],
        ["m", 17, 1, 1 << 53, "0.5"],
        ["m", 17, 1, 1, 0.5],
        ["w", 17, 1, 1, "a" * 257, "files", 9],
        ["w", 17, 1, 1, "ab", "", 9],
        ["w", 17, 1, 1, "ab", "folders", 9],
        ["e", 17, 1, "bored"],
        ["e", 17, 1, "failed", 1 << 54],
        ["e", 17, 1, "failed", 1, None, "x" * 65537],
        ["e", 17, 1, "failed", 1, None, "", float("nan")],
        ["e", 17, 1, "failed", 1, None, "", float("inf")],
        ["e", 17, 1, "failed", 1, None, "", 0.0, -1.0],
        ["v", 17, 1, 1, "omega", -1, "p", "d", 9],
        ["v", 17, 1, 1, "o" * 257, 0, "p", "d", 9],
    ],
    ids=str,
)
def test_what_no_agent_sends_is_refused(values: list[object]) -> None:
    with pytest.raises(WireError, match="malformed message"):
        decoded(values)


@pytest.mark.parametrize("raw", [b"", b"\xff", b"\x95\xa1m", b"\x91\xa1\xff", b"\x91" * 5000])
def test_what_is_no_array_is_refused(raw: bytes) -> None:
    with pytest.raises(WireError):
        decode_fact(raw)


def test_a_field_without_a_bound_is_noticed_at_once() -> None:
    @dataclass
    class Boundless:
        trial: facts.TrialId
        note: str

    Boundless.__annotations__ = {"trial": facts.TrialId, "note": str}
    with pytest.raises(TypeError, match="no bound is known for <class 'str'>"):
        _form(Boundless, "b")


#: For any Python: each reason is printed as its value, wherever texts or SQL are made of it.
PRINTED = """
from trial_runtime.facts import EndReason, MetricReported
for reason in EndReason:
    assert str(reason) == f"{reason}" == "%s" % reason == "{}".format(reason) == reason.value
    assert "a " + reason == "a " + reason.value and EndReason(reason.value) is reason
assert repr(EndReason.LOST) == "<EndReason.LOST: 'lost'>"
assert repr(MetricReported(1, 2, 3, "0.5")) == (
    "MetricReported(trial=1, attempt=2, seq=3, value='0.5')"
)
"""


def test_a_reason_is_printed_as_its_text() -> None:
    exec(PRINTED, {})


def test_a_reason_is_printed_as_its_text_by_the_oldest_python() -> None:
    python = old_python()
    if python is None:
        pytest.skip(WHY_NOT)
    done = subprocess.run(
        [python, "-c", PRINTED], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_facts_have_no_room_for_more() -> None:
    with pytest.raises((AttributeError, TypeError)):
        FACTS[0].more = 1  # type: ignore[union-attr]
    assert not hasattr(FACTS[0], "__dict__")
