"""The client against an engine that runs: answers, refusals, and nobody at the other end."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from dispatcher.channel import Router
from dispatcher.control.client import HeadClient, RunFile
from dispatcher.control.messages import ControlRequest, PieceRead, Reply, encoder, request_decoder
from dispatcher.control.server import ControlServer
from dispatcher.core import actions as a
from dispatcher.core import apply, new_state, outstanding
from dispatcher.core import events as e
from dispatcher.core.settings import Settings
from dispatcher.engine import Engine
from dispatcher.errors import PassingBackendError, UserError
from dispatcher.ports import RefusedEvent
from dispatcher.tuner_tools.scripted import ScriptedBackend
from tests.support.memory_journal import MemoryJournal
from tests.support.processes import wait_until
from trial_runtime.endpoint import Endpoint, connect

TOKEN = "a-token"
PATIENCE_S = 120.0
Context = zmq.Context[zmq.Socket[bytes]]


class SilentTuner:
    """A tuner port that is never ready: trials come by hand only."""

    def perform(self, action: a.TunerAction) -> None: ...

    def flush(self) -> None: ...

    def receive(self, payload: bytes) -> list[e.Event]:
        return []

    def check(self) -> list[e.Event]:
        return []

    def close(self, deadline_s: float) -> None: ...


class Deaf:
    """Takes no notice."""

    def act(self, action: a.HeadAction) -> None: ...

    def stacks(self, stacks: dict[int, str]) -> None: ...

    def peer_fault(self, owner: str, error: Exception) -> None: ...

    def refused(self, refused: RefusedEvent) -> None: ...


class LateRead:
    """What comes of a question: nothing before a test says so."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.looks = 0

    def ready(self) -> bool:
        self.looks += 1
        return self.over.is_set()

    def result(self) -> PieceRead:
        return PieceRead(b"abc", 3, "v", "i")


def admit(parameters: dict[str, Any]) -> e.TrialSubmitted:
    if "refuse" in parameters:
        raise UserError("not these", hint="others")
    return e.TrialSubmitted("{}", parameters.get("save"))


def update(key: str, value: Any) -> list[e.Event]:
    raise UserError(f"unknown key {key!r}")


def write_run_file(folder: Path, address: str, token: str = TOKEN) -> None:
    RunFile(os.getpid(), address, token, 1, 0.0).write(folder)


@pytest.fixture
def context() -> Iterator[Context]:
    with zmq.Context() as made:
        yield made


@pytest.fixture
def router(context: Context) -> Iterator[Router]:
    made = Router(context)
    made.admit_guests(TOKEN)
    yield made
    made.close()


@pytest.fixture
def address(router: Router, tmp_path_factory: pytest.TempPathFactory) -> str:
    return router.bind_ipc(tmp_path_factory.mktemp("c") / "head")


@pytest.fixture
def folder(tmp_path: Path, address: str) -> Path:
    """An experiment's folder whose head listens (and answers only where a test makes it)."""
    write_run_file(tmp_path, address)
    return tmp_path


@pytest.fixture
def late() -> LateRead:
    return LateRead()


@pytest.fixture
def engine(router: Router, folder: Path, late: LateRead) -> Iterator[Engine]:
    """One slot, and attempts that run until they are stopped."""
    journal = MemoryJournal()
    settings = Settings(slots=1, lookahead=1, stall_timeout_s=1e9)
    state = new_state(settings)
    apply(state, e.HeadStarted(1), 1.0)
    backend = ScriptedBackend(slots=1)
    made = Engine(
        state,
        journal,
        router,
        SilentTuner(),
        {"local": backend},
        ControlServer(admit, update, read=lambda wanted: late),
        Deaf(),
        debug=True,
    )
    made.begin(outstanding(state))
    made.start()
    yield made
    made.abandon()
    made.join(PATIENCE_S)
    assert not made.is_alive()
    assert made.error is None


@pytest.mark.usefixtures("engine")
def test_an_answer_that_comes_later_keeps_nobody_else_waiting(late: LateRead, folder: Path) -> None:
    """Mutations: the reply leaves before there is one; the engine waits for it."""
    got: list[Any] = []

    def ask() -> None:
        with HeadClient(folder, timeout_s=PATIENCE_S) as client:
            wanted = {"worker": "q", "trial": 0, "attempt": 1, "path": b"stdout"}
            got.append(client.ask("read_attempt", **wanted, offset=0, limit=9))

    thread = threading.Thread(target=ask)
    thread.start()
    wait_until(lambda: late.looks > 1, "the head looks whether it is there")
    with HeadClient(folder, timeout_s=PATIENCE_S) as client:
        assert client.ask("ping")["epoch"] == 1
    assert got == []
    late.over.set()
    thread.join(PATIENCE_S)
    assert got[0]["data"] == b"abc"


def test_several_questions_one_after_the_other(engine: Engine, folder: Path) -> None:
    with HeadClient(folder, timeout_s=PATIENCE_S) as client:
        assert client.ask("ping") == {"epoch": 1, "phase": "running"}
        trials = [client.ask("submit", parameters={"save": f"t/{n}"})["trial"] for n in range(3)]
        assert trials == [0, 1, 2]
        counts = client.ask("snapshot")["counts"]
        assert counts["running"] + counts["queued"] == 3
        assert client.ask("stop_trial", trial=2)["state"] in {"ended", "delivering"}


def test_several_clients_at_once_get_each_their_own(engine: Engine, folder: Path) -> None:
    answers: dict[int, list[int]] = {}

    def submit(who: int) -> None:
        with HeadClient(folder, timeout_s=PATIENCE_S) as client:
            answers[who] = [
                client.ask("submit", parameters={"save": f"{who}/{n}"})["trial"] for n in range(5)
            ]

    threads = [threading.Thread(target=submit, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(trial for trials in answers.values() for trial in trials) == list(range(20))
    for who, trials in answers.items():
        assert [engine.state.claims[f"{who}/{n}"] for n in range(5)] == trials


def test_refusals_come_back_as_the_heads_own_words(engine: Engine, folder: Path) -> None:
    with HeadClient(folder, timeout_s=PATIENCE_S) as client:
        with pytest.raises(UserError, match="not these") as raised:
            client.ask("submit", parameters={"refuse": True})
        assert raised.value.hint == "others"
        with pytest.raises(UserError, match="unknown key"):
            client.ask("update", key="x", value=1)
        with pytest.raises(UserError, match="unknown request"):
            client.ask("format_disk")
        with pytest.raises(UserError, match="malformed 'stop'"):
            client.ask("stop", kind="never", reason="")
        assert client.ask("ping")["phase"] == "running"


def test_a_stop_is_answered_before_the_engine_ends(engine: Engine, folder: Path) -> None:
    with HeadClient(folder, timeout_s=PATIENCE_S) as client:
        assert client.ask("stop", kind="now", reason="done") == {"phase": "stopped"}
    assert engine.finished.wait(PATIENCE_S)


def test_bytes_of_a_stranger_with_the_token_end_nothing(
    engine: Engine, folder: Path, context: Context, address: str
) -> None:
    with connect(context, Endpoint(address, f"control:{TOKEN}:noise")) as noise:
        for payload in (b"", b"\xc1", b"\x93\x01\xa1\xff\x80", b"\x91" * 5000):
            noise.send(payload)
            assert noise.poll(int(PATIENCE_S * 1000))
            noise.recv()
    with HeadClient(folder, timeout_s=PATIENCE_S) as client:
        assert client.ask("ping")


# -- nobody answers ------------------------------------------------------------------------


def test_no_run_file(tmp_path: Path) -> None:
    with pytest.raises(PassingBackendError, match="is not running") as raised:
        HeadClient(tmp_path)
    assert f"bequeath resume {tmp_path.name}" in raised.value.hint


def test_half_a_run_file_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"pid": 1')
    with pytest.raises(PassingBackendError, match="is not running"):
        HeadClient(tmp_path)


def test_a_wrong_token_gets_no_answer(
    engine: Engine, router: Router, folder: Path, context: Context, address: str
) -> None:
    with HeadClient(folder, timeout_s=PATIENCE_S) as client:
        client.ask("ping")
        with connect(context, Endpoint(address, "control:another:1")) as stranger:
            stranger.send(
                encoder.encode(ControlRequest(1, "stop", {"kind": "now", "reason": "let me"}))
            )
            wait_until(lambda: router.refused, "it is refused")
            assert client.ask("ping")["phase"] == "running"
            assert not stranger.poll(0)
    assert not engine.finished.is_set()
    assert router.refused == 1


def test_a_head_that_is_stuck(folder: Path) -> None:
    with (
        HeadClient(folder, timeout_s=0.1) as client,
        pytest.raises(PassingBackendError, match="does not answer") as raised,
    ):
        client.ask("ping")
    assert "log" in raised.value.hint


def test_a_late_answer_is_not_taken_for_the_next_one(router: Router, folder: Path) -> None:
    with HeadClient(folder, timeout_s=0.1) as client:
        with pytest.raises(PassingBackendError):
            client.ask("first")

        def answer() -> None:
            answered = 0
            while answered < 2:
                for _, peer, payload in router.poll(PATIENCE_S):
                    request: ControlRequest = request_decoder.decode(payload)
                    router.send(peer, encoder.encode(Reply(request.number, request.verb)))
                    answered += 1

        thread = threading.Thread(target=answer)
        thread.start()
        client.timeout_s = PATIENCE_S
        assert client.ask("second") == "second"
        thread.join(PATIENCE_S)


def test_the_run_file_is_the_owners_alone(folder: Path) -> None:
    path = folder / "run.json"
    assert path.stat().st_mode & 0o777 == 0o600
    run = RunFile.read(folder)
    assert run is not None
    assert run.token == TOKEN
    assert list(folder.iterdir()) == [path]


def test_a_head_takes_back_its_own_run_file_only(tmp_path: Path) -> None:
    """Mutation: ``remove`` looks at no token: a head that was taken over hides its successor."""
    older = RunFile(1, "ipc:///a", "older", 1, 0.0)
    newer = RunFile(2, "ipc:///a", "newer", 2, 0.0)
    older.write(tmp_path)
    newer.write(tmp_path)
    older.remove(tmp_path)
    assert RunFile.read(tmp_path) == newer
    newer.remove(tmp_path)
    assert RunFile.read(tmp_path) is None
    newer.remove(tmp_path)
