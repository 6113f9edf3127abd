"""The server without a socket: what each verb does, and that no request can do more than fail."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dispatcher.control.bounds import MAX_GRACE_S
from dispatcher.control.messages import (
    MAX_REQUEST_BYTES,
    ControlRequest,
    PieceRead,
    ReadArguments,
    Reply,
    encoder,
    reply_decoder,
)
from dispatcher.control.samples import add_samples
from dispatcher.control.server import LISTED, ControlServer, Handled, snapshot
from dispatcher.control.snapshot import HeadSnapshot
from dispatcher.core import State
from dispatcher.core import events as e
from dispatcher.core.model import EndReason, TrialState
from dispatcher.errors import ProtocolError, UserError
from tests.support.scene import Scene
from trial_runtime.resource_wire import AttemptSample, DeviceSample, Samples

VERBS: dict[str, dict[str, Any]] = {
    "ping": {},
    "step_down": {},
    "snapshot": {},
    "stop": {"kind": "now", "reason": "enough"},
    "stop_trial": {"trial": 0},
    "submit": {"parameters": {"x": 1}},
    "update": {"key": "lookahead", "value": 3},
    "read_attempt": {
        "worker": "q",
        "trial": 0,
        "attempt": 1,
        "path": b"stdout",
        "offset": 0,
        "limit": 9,
    },
    "import": {"rows": [{"parameter": {"x": 1}, "value": 1}]},
}


class LateRead:
    """A question that nobody has answered yet."""

    def __init__(self, wanted: ReadArguments) -> None:
        self.wanted, self.over = wanted, True

    def ready(self) -> bool:
        return self.over

    def result(self) -> PieceRead:
        return PieceRead(b"abc", 3, "v", "i")


class Counter:
    """A server over a scene; an event it lets through is applied, as the engine does."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.admitted: list[dict[str, Any]] = []
        self.updated: list[tuple[str, Any]] = []
        self.stepped_down = 0
        self.reads: list[LateRead] = []
        self.server = ControlServer(
            self._admit,
            self._update,
            clock=lambda: scene.now,
            step_down=self._step_down,
            read=self._read,
            ways=lambda: {"local": "direct", "gone": "folder"},
        )

    def _read(self, wanted: ReadArguments) -> LateRead:
        if wanted.worker == "gone":
            raise UserError("no such worker")
        self.reads.append(LateRead(wanted))
        return self.reads[-1]

    def _step_down(self) -> None:
        self.stepped_down += 1

    def _admit(self, parameters: dict[str, Any]) -> e.TrialSubmitted:
        self.admitted.append(parameters)
        if "refuse" in parameters:
            raise UserError("not these", hint="others")
        return e.TrialSubmitted("{}", parameters.get("save"), parameters.get("restore"))

    def _update(self, key: str, value: Any) -> list[e.Event]:
        self.updated.append((key, value))
        return [e.SearchSpaceUpdated("{}")]

    def receive(self, payload: bytes) -> Handled:
        return self.server.receive(payload, self.scene.state)

    def ask(self, verb: str, **arguments: Any) -> Reply:
        handled = self.receive(encoder.encode(ControlRequest(7, verb, arguments)))
        self.scene.say(*handled.events)
        reply = reply_decoder.decode(handled.reply(self.scene.state))
        assert reply.number == 7
        return reply


@pytest.fixture
def scene() -> Scene:
    """Trial 0 runs, 1 waits for it in the tuner, 2 is open."""
    scene = Scene(slots=2, lookahead=8, max_trials=9)
    scene.propose(0)
    scene.started(0)
    scene.wait(1, 0)
    return scene


@pytest.fixture
def counter(scene: Scene) -> Counter:
    return Counter(scene)


def refusal(handled: Handled, state: State) -> Reply:
    """Its reply, which must be an error and change nothing."""
    assert handled.events == []
    reply = reply_decoder.decode(handled.reply(state))
    assert reply.error
    assert reply.data is None
    return reply


# -- what the verbs do ---------------------------------------------------------------------


def test_ping(counter: Counter) -> None:
    assert counter.ask("ping").data == {"epoch": 1, "phase": "running"}


def test_stop_now_goes_further_than_a_drain(counter: Counter) -> None:
    assert counter.ask("stop", kind="drain", reason="tired").data == {"phase": "draining"}
    reply = counter.ask("stop", kind="now", reason="very tired", grace_s=2)
    assert reply.data == {"phase": "stopping"}
    assert counter.scene.state.phase_reason == "tired"  # the first reason is the reason


def test_stop_trial_answers_with_the_state_after_it(counter: Counter) -> None:
    running = {"state": "running", "before": "running", "outcome": None}
    assert counter.ask("stop_trial", trial=0).data == running  # until it has ended
    assert counter.scene.trial(0).kill_reason is EndReason.KILLED
    ended = {"state": "ended", "before": "blocked", "outcome": None}
    assert counter.ask("stop_trial", trial=1).data == ended  # it only waited


def test_a_trial_that_is_over_may_be_stopped_again(counter: Counter) -> None:
    counter.ask("stop_trial", trial=1)
    over = {"state": "ended", "before": "ended", "outcome": "no trial"}
    assert counter.ask("stop_trial", trial=1).data == over


def test_submit_answers_with_the_new_trials_number(counter: Counter) -> None:
    expected = int(counter.scene.state.next_id)
    assert counter.ask("submit", parameters={"save": "hand/1"}).data == {"trial": expected}
    assert counter.scene.trial(expected).state is not TrialState.ENDED
    assert counter.admitted == [{"save": "hand/1"}]


def test_a_taken_save_path_is_an_error_and_not_a_trial(counter: Counter) -> None:
    reply = counter.ask("submit", parameters={"save": "t/0"})
    assert "refused" in reply.error
    assert "save path" in reply.hint
    assert reply.data is None


def test_what_the_head_does_not_admit_changes_nothing(counter: Counter, scene: Scene) -> None:
    reply = refusal(
        counter.receive(encoder.encode(ControlRequest(7, "submit", {"parameters": {"refuse": 1}}))),
        scene.state,
    )
    assert (reply.number, reply.error, reply.hint) == (7, "not these", "others")


def test_update_hands_on_key_and_value_as_they_are(counter: Counter) -> None:
    assert counter.ask("update", key="lookahead", value=[1, None]).data == {"key": "lookahead"}
    assert counter.updated == [("lookahead", [1, None])]
    assert counter.scene.state.search_space == "{}"


# -- what is refused -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        b"\xff not msgpack",
        encoder.encode({"verb": "ping"}),
        encoder.encode([1]),
        encoder.encode(["one", "ping", {}]),
        encoder.encode([1, "ping", []]),
        encoder.encode([1, "ping", {1: 2}]),
        b"\x93\x01\xa1\xff\x80",  # a verb that is not UTF-8
        b"\x93\x01\xa4ping\x81\xa1x" + b"\x91" * 5000,  # deeper than the interpreter goes
    ],
)
def test_a_malformed_request_is_answered(counter: Counter, scene: Scene, payload: bytes) -> None:
    reply = refusal(counter.receive(payload), scene.state)
    assert reply.number == 0  # nobody can tell whose it was
    assert "malformed request" in reply.error


@pytest.mark.parametrize("verb", ["", "Ping", "_ping", "receive", "__class__"])
def test_an_unknown_verb(counter: Counter, scene: Scene, verb: str) -> None:
    reply = refusal(counter.receive(encoder.encode(ControlRequest(3, verb))), scene.state)
    assert reply.number == 3
    assert repr(verb) in reply.error


@pytest.mark.parametrize(
    "verb,changes",
    [
        ("stop", {"kind": "never"}),
        ("stop", {"kind": 1}),
        ("stop", {"reason": None}),
        ("stop", {"grace_s": "2"}),
        ("stop", {"grace_s": -1}),
        ("stop", {"grace_s": float("nan")}),
        ("stop", {"grace_s": float("inf")}),
        ("stop", {"grace_s": MAX_GRACE_S + 1}),
        ("stop_trial", {"trial": "0"}),
        ("stop_trial", {"trial": 0.0}),
        ("stop_trial", {"trial": True}),
        ("stop_trial", {"trial": [0]}),
        ("submit", {"parameters": [1]}),
        ("submit", {"parameters": None}),
        ("submit", {"parameters": {1: 2}}),
        ("update", {"key": 5}),
        *((verb, {"surplus": 1}) for verb in VERBS),
        *((verb, {"state": 1, "request": 2, "self": 3}) for verb in VERBS),
    ],
)
def test_arguments_of_the_wrong_type(
    counter: Counter, scene: Scene, verb: str, changes: dict[str, Any]
) -> None:
    arguments = VERBS[verb] | changes
    payload = encoder.encode(ControlRequest(5, verb, arguments))
    reply = refusal(counter.receive(payload), scene.state)
    assert reply.number == 5
    assert reply.error.startswith(("malformed", "there is no trial"))
    assert not counter.admitted
    assert not counter.updated


@pytest.mark.parametrize("verb", [verb for verb, arguments in VERBS.items() if arguments])
def test_missing_arguments(counter: Counter, scene: Scene, verb: str) -> None:
    reply = refusal(counter.receive(encoder.encode(ControlRequest(5, verb))), scene.state)
    assert f"malformed '{verb}'" in reply.error


@pytest.mark.parametrize("trial", [-1, 999, 1 << 62])
def test_no_such_trial(counter: Counter, scene: Scene, trial: int) -> None:
    payload = encoder.encode(ControlRequest(5, "stop_trial", {"trial": trial}))
    assert refusal(counter.receive(payload), scene.state).error == f"there is no trial {trial}"


def test_an_error_that_quotes_what_cannot_be_sent(scene: Scene) -> None:
    def refuse(key: str, value: Any) -> list[e.Event]:
        raise UserError("no \ud800 here", hint="nor \udfff")

    server = ControlServer(lambda parameters: e.TrialSubmitted("{}"), refuse)
    payload = encoder.encode(ControlRequest(5, "update", {"key": "searchSpace", "value": 1}))
    reply = refusal(server.receive(payload, scene.state), scene.state)
    assert (reply.error, reply.hint) == ("no \\ud800 here", "nor \\udfff")


def test_depth_that_only_the_rooms_behind_notice(scene: Scene) -> None:
    def deep(parameters: dict[str, Any]) -> e.TrialSubmitted:
        raise RecursionError

    server = ControlServer(deep, lambda key, value: [])
    payload = encoder.encode(ControlRequest(5, "submit", {"parameters": {}}))
    assert "too deeply" in refusal(server.receive(payload, scene.state), scene.state).error


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_works_as_these_tests_call_it(counter: Counter, verb: str) -> None:
    """Else the refusals above could be refusals of something else."""
    assert counter.ask(verb, **VERBS[verb]).error == ""


# -- the snapshot --------------------------------------------------------------------------


def test_a_snapshot_says_who_runs_who_waits_and_why(counter: Counter, scene: Scene) -> None:
    scene.metric(0, 1, "0.25")
    data = counter.ask("snapshot").data
    assert (data["phase"], data["epoch"], data["slots"]) == ("running", 1, 2)
    assert (data["max_trials"], data["submitted"], data["ended"]) == (9, 1, 0)
    assert data["counts"]["running"] == data["counts"]["blocked"] == 1
    (running,) = data["running"]
    assert (running["trial"], running["attempt"], running["state"]) == (0, 1, "running")
    assert (running["worker"], running["parent"], running["last"]) == ("local", None, "0.25")
    assert running["for_s"] > 0
    (waiting,) = data["waiting"]
    assert (waiting["trial"], waiting["mode"], waiting["for"]) == (1, "all", [0])
    worker = {"name": "local", "slots": 2, "busy": 1, "alive": True}
    beside = {"waiting": "", "waits_s": None, "ends_in_s": None, "way": "direct"}
    assert data["workers"] == [worker | beside]
    assert set(data["why"]) == {"cause", "text"}
    assert data["active_s"] == scene.now - 1001.0  # since HeadStarted


def test_each_collection_of_trials_is_counted(scene: Scene) -> None:
    states = {state.value for state in TrialState} - {"ended"}
    assert set(snapshot(scene.state, scene.now)["counts"]) == states


def test_a_snapshot_of_many_lists_some_and_counts_all() -> None:
    scene = Scene(slots=2, lookahead=LISTED + 50)
    scene.propose(0)
    for trial in range(1, LISTED + 21):
        scene.wait(trial, 0)
    data = snapshot(scene.state, scene.now)
    assert data["counts"]["blocked"] == LISTED + 20
    assert len(data["waiting"]) == LISTED
    assert len(encoder.encode(data)) < 100_000


def test_a_snapshot_is_plain_data(scene: Scene) -> None:
    data = snapshot(scene.state, scene.now)
    assert msgspec.json.decode(msgspec.json.encode(data)) == data


def test_the_type_of_a_snapshot_loses_nothing_of_an_answer(scene: Scene) -> None:
    """Mutation: a key that the head sends and the type does not have, or another name for it."""
    scene.metric(0, 1, "0.25")
    data = snapshot(scene.state, scene.now) | {"refused": {"local": {"late": 2}}}
    device = DeviceSample("GPU-a", 0, "H100", 80, 2, 37.0, 300.0, 61.0)
    sample = AttemptSample(0, 1, 150.0, 7, ("GPU-a",), 2)
    add_samples(data, {"local": Samples((device,), (sample,))})
    assert data["running"][0]["cpu"] == 150.0
    read = HeadSnapshot.of(msgspec.msgpack.decode(encoder.encode(data)))
    assert msgspec.to_builtins(read) == data
    assert list(msgspec.to_builtins(read)) == list(data)


def test_an_answer_of_another_form_is_an_error_of_its_sender() -> None:
    with pytest.raises(ProtocolError, match="cannot be read"):
        HeadSnapshot.of({"phase": 3})


def test_a_head_that_takes_over_is_obeyed_and_answered(scene: Scene) -> None:
    """Mutation: the server answers and does nothing."""
    counter = Counter(scene)
    assert counter.ask("step_down").data == {"epoch": scene.state.epoch}
    assert counter.stepped_down == 1


def test_a_request_that_would_hold_up_the_engine_is_refused(counter: Counter) -> None:
    told = {"parameters": {"x": "a" * MAX_REQUEST_BYTES}}
    payload = encoder.encode(ControlRequest(7, "submit", told))
    reply = refusal(counter.receive(payload), counter.scene.state)
    assert "are allowed" in reply.error
    assert counter.admitted == []


def test_a_snapshot_tells_what_was_refused(scene: Scene) -> None:
    counts = {"head": {"stranger": 3}, "agent": {"flood": 1}}
    server = ControlServer(
        lambda p: e.TrialSubmitted("{}"), lambda k, v: [], lambda: 0.0, lambda: counts
    )
    handled = server.receive(encoder.encode(ControlRequest(1, "snapshot")), scene.state)
    assert reply_decoder.decode(handled.reply(scene.state)).data["refused"] == counts


def test_a_part_of_a_file_is_answered_when_it_is_there(counter: Counter) -> None:
    request = ControlRequest(7, "read_attempt", VERBS["read_attempt"])
    handled = counter.receive(encoder.encode(request))
    (read,) = counter.reads
    assert read.wanted == ReadArguments("q", 0, 1, b"stdout", 0, 9)
    read.over = False
    assert not handled.ready()
    read.over = True
    assert handled.ready()
    reply = reply_decoder.decode(handled.reply(counter.scene.state))
    assert msgspec.convert(reply.data, PieceRead) == PieceRead(b"abc", 3, "v", "i")


def test_a_worker_that_there_is_not_is_said_at_once(counter: Counter) -> None:
    arguments = VERBS["read_attempt"] | {"worker": "gone"}
    assert counter.ask("read_attempt", **arguments).error == "no such worker"
