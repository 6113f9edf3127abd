"""An agent whose trials are hostile: it lives, the honest trial beside them ends as it should,
nobody speaks for another, and what is refused is counted."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from tests.fuzz.budget import seeds
from tests.fuzz.frames import Frames
from tests.integration.agent.fake_head import FakeHead
from trial_runtime import facts, wire
from trial_runtime.facts import EndReason
from trial_runtime.local_channel import SCHEME, LocalChannel
from trial_runtime.session_file import SessionFile, read_session

#: Reports one metric for each line of the file that the test writes, until it says "end".
HONEST = """
import trial_runtime
from tests.support import hold
said = 0
while True:
    lines = open("go").read().split()
    for _ in range(said, len(lines)):
        if lines[said] == "end":
            trial_runtime.report_final(7.0)
            raise SystemExit(0)
        trial_runtime.report_intermediate(float(lines[said]))
        said += 1
    hold.pace()
"""

#: Memory that an agent may take beyond what it had before (bytes): frames that wait, not more.
GROWTH_BYTES = 96 << 20
PATIENCE_S = 120.0


class Speaker:
    """Says anything to the door under a secret, and comes again when it is hung up on."""

    def __init__(self, session: SessionFile, hello: str, patience_s: float = PATIENCE_S) -> None:
        self._make = lambda: LocalChannel(session.address, hello, patience_s=patience_s)
        self._channel: LocalChannel | None = None
        self.opened = 0

    def __enter__(self) -> Speaker:
        return self

    def __exit__(self, *_: object) -> None:
        if self._channel is not None:
            self._channel.close()

    def send(self, payload: bytes) -> bool:
        """False if the agent hung up meanwhile."""
        try:
            if self._channel is None:
                self._channel = self._make()
                self.opened += 1
            self._channel.send(payload)
            while self._channel.receive(0) is not None:
                pass
        except OSError:
            if self._channel is not None:
                self._channel.close()
            self._channel = None
            return False
        return True


class Scene:
    """Two attempts of one agent: 1 is honest, 2 belongs to whoever attacks."""

    def __init__(self, folder: Path, **changes: object) -> None:
        self.head = FakeHead(folder, command="exec python honest.py", **changes)
        self.head.script(HONEST, "honest.py")
        self.go = self.head.code / "go"
        self.go.write_text("")
        self.head.launch()
        self.head.until(lambda: self.head.life, "hello")
        self.said: list[float] = []

    def start(self) -> SessionFile:
        """Both run; the session of the second, which is the attacker's own."""
        self.head.start(1)
        self.head.start(2)
        self.metric()
        self.head.until(lambda: self.head.metrics(1), "a first metric")
        return read_session(f"{self.head.run_folder}/s2.1.json")

    def metric(self) -> None:
        """Let the honest ones (both run the same program) report once more."""
        self.said.append(len(self.said) / 4)
        with self.go.open("a") as file:
            file.write(f"{self.said[-1]}\n")

    def end(self) -> None:
        """The honest trial ends as if nobody else were there."""
        with self.go.open("a") as file:
            file.write("end\n")
        ended = self.head.end_of(1)
        assert (ended.reason, ended.exit_code) == (EndReason.FINISHED, 0)
        assert self.head.metrics(1) == self.said
        assert self.head.finals(1) == [7.0]
        self.head.end_of(2)

    def refused(self, **least: int) -> dict[str, int]:
        """The agent's counts, once they are at least these."""
        reasons = {reason.replace("_", " "): many for reason, many in least.items()}

        def counted() -> dict[str, int]:
            beats = self.head.heartbeats
            counts = beats[-1].refused if beats else {}
            return counts if all(counts.get(r, 0) >= m for r, m in reasons.items()) else {}

        found: dict[str, int] = self.head.until(counted, f"counts of {reasons}")
        return found

    def memory(self) -> int:
        assert self.head.process is not None
        return int(psutil.Process(self.head.process.pid).memory_info().rss)

    def close(self) -> None:
        self.head.close()


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("d")  # short, for the sockets in it


@pytest.fixture
def scene(folder: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    made = Scene(folder, **getattr(request, "param", {}))
    try:
        yield made
    finally:
        made.close()


def true_frame(draw: random.Random) -> bytes:
    return wire.frame(
        draw.choices(
            (
                wire.Attach(7),
                wire.AcceptsStop(),
                wire.Metric("0.5"),
                wire.Final('{"default":1}'),
                wire.PublishedMessage("ab", "bequeath", 7),
                wire.Done((1, 1), 0),
            ),
            k=draw.choice((1, 2, 5)),
        )
    )


def test_a_hostile_trial_harms_itself_only(scene: Scene) -> None:
    mine = scene.start()
    before = scene.memory()
    secret = mine.routing.partition(":")[2]
    strangers = 0
    for seed in seeds(usual=60):
        frames = Frames(seed, true_frame)
        with (
            Speaker(mine, mine.routing) as own,
            Speaker(mine, f"t1.1:{secret}") as as_another,
            Speaker(mine, f"stranger:{seed}") as stranger,
        ):
            for number in range(30):
                own.send(frames.next())
                as_another.send(wire.frame([wire.Final("666"), wire.Metric("666")]))
                if number % 10 == 0:
                    stranger.send(frames.next())
            strangers += as_another.opened + stranger.opened
        scene.metric()
        scene.head.listen(0.01)
    for payload in (
        wire.frame([wire.Metric("1" * 150_000)]),
        wire.frame([wire.Metric("nan")]),
        wire.frame([]),
        bytes(8 << 20),
    ):
        with Speaker(mine, mine.routing) as own:
            own.send(payload)
    # Among the strangers is all that was said in another's name.
    scene.refused(malformed=1, oversize=1, metric=1, stranger=strangers)
    scene.end()
    assert scene.memory() - before < GROWTH_BYTES
    assert len(scene.head.log()) < 20_000, "the log grows with what is refused"
    for word in scene.head.words:  # whatever was taken from the hostile one can be held
        if isinstance(word, facts.MetricReported | facts.FinalReported):
            assert word.trial == 2 or word.value in {str(value) for value in (*scene.said, 7.0)}
            msgspec.json.decode(word.value)


def test_bytes_that_are_no_frames(scene: Scene) -> None:
    mine = scene.start()
    path = mine.address.removeprefix(SCHEME)
    draw = random.Random(1)
    for _ in range(50):
        with socket.socket(socket.AF_UNIX) as raw:
            raw.connect(path)
            claim = b"\xff\xff\xff\xff" + draw.randbytes(60)
            raw.sendall(draw.choice((draw.randbytes(500), claim, b"GET / HTTP/1.1\r\n\r\n", b"")))
        scene.metric()
    scene.end()


# Less than the slowest machine can hear of a flood.
@pytest.mark.parametrize("scene", [{"max_message_rate": 1000}], indirect=True)
def test_a_flood_is_cut_off_and_the_others_are_heard(scene: Scene) -> None:
    mine = scene.start()
    before = scene.memory()
    over = threading.Event()
    frame = wire.frame([wire.AcceptsStop()] * 1000)

    def flood() -> None:
        with Speaker(mine, mine.routing, patience_s=0.1) as rude:
            while not over.is_set():  # never heeds a receipt
                rude.send(frame)

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        scene.refused(flood=1)
        for _ in range(50):
            scene.metric()
        scene.end()  # while it goes on
        assert scene.memory() - before < GROWTH_BYTES
    finally:
        over.set()
        thread.join()


FAST = """
import trial_runtime
for number in range(4000):
    trial_runtime.report_intermediate(number)
trial_runtime.report_final(1)
"""


@pytest.mark.parametrize("scene", [{"max_message_rate": 1000}], indirect=True)
def test_a_fast_reporter_is_slowed_down_and_loses_nothing(scene: Scene) -> None:
    scene.head.script(FAST, "honest.py")
    ended = scene.head.run(3)
    assert ended.reason == EndReason.FINISHED
    assert scene.head.metrics(3) == list(range(4000))
    # A second's worth at once, what may be under way, and the rest at 1,000 a second.
    assert ended.wall_s > 1.0
    scene.head.until(lambda: scene.head.heartbeats, "a heartbeat")
    assert not scene.head.heartbeats[-1].refused
