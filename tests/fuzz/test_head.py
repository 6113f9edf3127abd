"""A real experiment while strangers, guests and foreign keys talk to its head without end."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import zmq

from dispatcher.channel import CurveKeys
from dispatcher.control.client import HeadClient, RunFile
from dispatcher.control.messages import MAX_REQUEST_BYTES, ControlRequest, encoder
from dispatcher.core import events as e
from tests.fuzz.budget import seeds
from tests.fuzz.frames import Frames
from tests.integration.experiment.conftest import Lab
from tests.support.checker import check_store
from tests.support.processes import processes_of, wait_until
from trial_runtime import facts, wire
from trial_runtime.endpoint import MAX_MESSAGE_BYTES, Endpoint, connect
from trial_runtime.fact_wire import encode_fact

GROWTH_BYTES = 96 << 20
PATIENCE_S = 240.0
LINGER_MS = 60_000


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    one = Lab(tmp_path)
    try:
        yield one
    finally:
        one.close()


class Attacker:
    """Knows where the head of an experiment listens, and what it is told besides."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        run = RunFile.read(folder)
        assert run is not None
        self.run = run
        self.keys = folder / "keys"
        self.context = zmq.Context()
        self.at_the_gate: list[zmq.Socket[bytes]] = []
        self.tcp = f"tcp://127.0.0.1:{(self.keys / 'port').read_text()}"

    def say(
        self, routing_id: str, *frames: bytes, address: str = "", stays: bool = False, **keys: str
    ) -> None:
        """Come, say it, and go when it has arrived, however busy the head is; or stay."""
        one = connect(self.context, Endpoint(address or self.run.address, routing_id, **keys))
        for frame in frames:
            one.send(frame)
        if address or stays:  # a handshake that fails, whenever the head gets to it
            self.at_the_gate.append(one)
        else:
            one.close(linger=LINGER_MS)

    def raw(self, payload: bytes) -> None:
        """Bytes that are no ZeroMQ, to both sockets."""
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(self.run.address.removeprefix("ipc://"))
            one.sendall(payload)
        with socket.create_connection(("127.0.0.1", int(self.tcp.rpartition(":")[2]))) as one:
            one.sendall(payload)

    def refused(self) -> dict[str, Any]:
        with HeadClient(self.folder, timeout_s=PATIENCE_S) as client:
            counts: dict[str, Any] = client.ask("snapshot")["refused"]
        return counts

    def close(self) -> None:
        self.context.destroy(linger=0)


def harmless(draw: random.Random) -> bytes:
    """Requests that ask and change nothing; damaged ones have to fail."""
    verb = draw.choice(("ping", "snapshot", "no_such_verb"))
    return encoder.encode(ControlRequest(draw.randrange(99), verb, {}))


def agents(draw: random.Random) -> bytes:
    """What an agent would say; nobody who does not know its secret is one."""
    word = encode_fact(facts.FinalReported(draw.randrange(9), 1, 1, "666"))
    hello = wire.AgentHello("life", "local", 1, 7, [], 1)
    said: wire.FromAgent = wire.AttemptMessages(1, [word]) if draw.random() < 0.5 else hello
    return wire.frame(wire.AgentFrame(1, [said]))


def test_an_experiment_goes_on_whoever_talks_to_its_head(lab: Lab) -> None:
    other = lab.create(maxTrialNumber=1)  # another experiment's folder: its agent's name is known
    folder = lab.create(channel={"transport": "tcp"})
    pid = lab.start(folder)
    attacker = Attacker(folder)
    head = psutil.Process(pid)
    head_key = CurveKeys.kept(folder / "keys" / "head").public
    before = head.memory_info().rss
    token = attacker.run.token
    try:
        for seed in seeds(usual=15):
            guests, fakes = Frames(seed, harmless, prefix=b""), Frames(seed, agents)
            asked = [guests.next() for _ in range(20)]
            lies = [fakes.next() for _ in range(10)]
            attacker.say(f"control:{token}:{seed}", *asked)
            attacker.say(f"control:{'0' * len(token)}:{seed}", *asked)
            attacker.say(f"control:{token[:-1]}:{seed}", *asked)
            attacker.say(f"agent:local:{seed:032x}", *lies)
            attacker.say(f"tuner:{seed:032x}", *lies)
            attacker.say(f"agent:local:{other.name}", *lies)
            foreign = CurveKeys.fresh()
            for server in (head_key, CurveKeys.fresh().public):
                attacker.say(
                    "agent:local",
                    *lies,
                    address=attacker.tcp,
                    server_key=server,
                    public_key=foreign.public,
                    secret_key=foreign.secret,
                )
            attacker.say("plain", *lies, address=attacker.tcp)
            attacker.raw(random.Random(seed).randbytes(900))
            attacker.raw(b"\xff" + bytes(8) + b"\x7f\x03\x00CURVE" + bytes(100))
        attacker.say(f"control:{token}:big", bytes(MAX_REQUEST_BYTES + 1), stays=True)
        attacker.say(f"control:{token}:huge", bytes(MAX_MESSAGE_BYTES + 1), stays=True)
        counted: dict[str, int] = {}

        def all_is_counted() -> bool:
            counted.update(attacker.refused()["head"])
            wanted = {"stranger": 15 * 60, "foreign key": 15}
            return all(counted.get(reason, 0) >= least for reason, least in wanted.items())

        wait_until(all_is_counted, f"all is counted: {counted}", PATIENCE_S)
        assert head.is_running()
        assert head.memory_info().rss - before < GROWTH_BYTES
        log = folder / "logs" / "head.log"
        assert log.stat().st_size < 1 << 20

        def ended() -> int:
            return sum(isinstance(event, e.EndDelivered) for event in lab.rows(folder))

        wait_until(lambda: ended() >= 20, "20 trials have ended", PATIENCE_S)
        with HeadClient(folder, timeout_s=PATIENCE_S) as client:
            client.ask("stop", kind="drain", reason="that is enough")
        wait_until(lambda: not processes_of(folder), "all is over", PATIENCE_S)
    finally:
        attacker.close()
    assert check_store(folder / "journal.sqlite") == []
    rows = lab.rows(folder)
    assert not [x for x in rows if isinstance(x, e.FinalReported) and x.value == "666"]
    assert not [x for x in rows if isinstance(x, e.WorkerLost | e.TunerHostLost)]
    assert all(x.reason.value == "finished" for x in rows if isinstance(x, e.AttemptEnded))
