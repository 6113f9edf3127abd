"""A state survives its way to bytes and back, also between versions."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from dispatcher import state_codec
from dispatcher.core import apply, check
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason, State
from dispatcher.core.queue_classes import enter, heads, leave
from dispatcher.core.settings import Settings
from dispatcher.errors import ProtocolError
from dispatcher.state_codec import decode_state, encode_state
from dispatcher.store import SqliteJournal
from tests.support.replaying import differences
from tests.unit.store.life import Life


@pytest.fixture
def state(tmp_path: Path) -> State:
    """Trials in many states: ended, running, held, blocked, queued, waiting to be retried."""
    journal = SqliteJournal.open(tmp_path / "journal.sqlite")
    life = Life(journal, slots=3, trial_retries=2)
    life.say(e.WorkerJoined("local", 2))  # type: ignore[arg-type]
    life.say(e.TunerHostReady())
    life.whole(0)
    life.propose(1)
    life.say(e.WaitStarted(TrialId(2), 1, (TrialId(1),)))
    life.propose(3)
    life.say(e.AttemptStarted(TrialId(3), 1, 7), e.MetricReported(TrialId(3), 1, 5, "0.25"))
    life.say(e.TrialSubmitted('{"x": 1}', "by/hand", "t/1"))
    life.propose(4)
    life.say(e.TrialSubmitted("{}"))  # there is no slot for it
    life.say(e.RemovalAnnounced((TrialId(0),)))
    life.exit(1, 1, EndReason.FAILED)
    journal.close()
    return life.state


def test_it_comes_back_as_it_was(state: State) -> None:
    for found in (state.waits, state.backoff, state.held, state.queued, state.removed_weights):
        assert found, "the life has too little in it"
    again = decode_state(encode_state(state))
    assert differences(state, again) == []
    assert again.trials[TrialId(3)].last_intermediate == "0.25"
    check(again)


def test_renamed_fields_keep_the_names_that_older_states_have(state: State) -> None:
    worker, trial = state.workers[WorkerId("local")], state.trials[TrialId(1)]
    worker.excluded, worker.health.quarantines, trial.result = True, 2, "0.5"
    head, part = (msgspec.msgpack.decode(one) for one in encode_state(state))
    stored_worker = head["workers"]["local"]
    assert stored_worker["kept_out"]
    assert stored_worker["conduct"]["quarantines"] == 2
    assert next(one for one in part if one["id"] == 1)["told"] == "0.5"
    assert differences(state, decode_state(encode_state(state))) == []


def test_a_trial_that_is_over_takes_little(state: State) -> None:
    _, part = encode_state(state)
    written = msgspec.msgpack.decode(part)
    over = next(one for one in written if one["id"] == 0)
    assert len(msgspec.msgpack.encode(over)) < 500
    assert "failures" not in over, "what has its default is left out"


def test_bytes_of_an_older_version_read_the_defaults_of_what_they_lack(state: State) -> None:
    written, trials = map(msgspec.msgpack.decode, encode_state(state))
    del trials[0]["success"]
    written.pop("results_seen")
    again = decode_state(map(msgspec.msgpack.encode, (written, trials)))
    assert again.trials[TrialId(0)].success is False
    assert again.results_seen == 0


def test_a_queue_that_was_written_as_a_list_is_read(state: State) -> None:
    written, trials = map(msgspec.msgpack.decode, encode_state(state))
    written["queued"] = list(written["queued"])
    again = decode_state(map(msgspec.msgpack.encode, (written, trials)))
    assert again.queued == state.queued
    check(again)


def test_a_queue_whose_places_were_not_counted_goes_on_in_its_order(state: State) -> None:
    """Mutation: all have the same place, so the lowest number goes first."""
    apply(state, e.TrialSubmitted("{}"), state.now)
    lowest, *_ = state.queued
    leave(state, state.trials[lowest])
    state.trials[lowest].failed_on = WorkerId("local")  # in a line of its own
    enter(state, state.trials[lowest])
    expected = [trial.id for trial in heads(state)]
    assert expected[-1] == lowest < expected[0], "it is behind those that came before it"
    written, trials = map(msgspec.msgpack.decode, encode_state(state))
    written.pop("came")
    for trial in trials:
        trial.pop("place", None)
    again = decode_state(map(msgspec.msgpack.encode, (written, trials)))
    assert [trial.id for trial in heads(again)] == expected
    leave(again, again.trials[lowest])
    enter(again, again.trials[lowest])
    assert list(heads(again))[-1].id == lowest


def test_many_trials_are_written_in_parts(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_codec, "TRIALS_A_PART", 2)
    parts = list(encode_state(state))
    assert len(parts) == 1 + (len(state.trials) + 1) // 2
    assert differences(state, decode_state(parts)) == []


def test_the_smallest_state_comes_back() -> None:
    state = State(Settings(1, 8))
    assert decode_state(encode_state(state)) == state


@pytest.mark.parametrize("junk", [b"", b"\x00", b"\x93\x01\x02\x03", b"\x81\xa8settings\xc0"])
def test_what_is_no_state_is_refused(junk: bytes) -> None:
    with pytest.raises(ProtocolError, match="malformed state"):
        decode_state([junk])
    good, *_ = encode_state(State(Settings(1, 8)))
    with pytest.raises(ProtocolError, match="malformed state"):
        decode_state([good, junk])
