"""Nodes of one allocation: ranks, the meeting, and rank 0's side with followers of the test's."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from tests.support.processes import wait_until
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.agent.nodes import meeting as meetings
from trial_runtime.agent.nodes.followers import Followers
from trial_runtime.agent.nodes.meeting import CannotMeet, Leader, Meeting, own_address
from trial_runtime.agent.nodes.messages import (
    SILENT_S,
    Job,
    Report,
    Wish,
    decode,
    encode,
)
from trial_runtime.agent.nodes.nodes import PATIENCE_S, Nodes
from trial_runtime.agent.nodes.variables import rank_variables
from trial_runtime.endpoint import Endpoint, connect
from trial_runtime.session_file import SESSION_VERSION, SessionFile

RANK = "BEQUEATH_RANK"
LEADER = Leader("tcp://h:1", "h", "key", "token")


def test_claims_of_one_moment_are_distinct(tmp_path: Path) -> None:
    """Mutation: a rank is looked for, and then taken."""
    ranks: list[int] = []
    begin = threading.Barrier(16)

    def claim() -> None:
        begin.wait()
        ranks.append(Meeting(tmp_path, "t", 16).rank(RANK, {}))

    threads = [threading.Thread(target=claim) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ranks) == list(range(16))
    with pytest.raises(CannotMeet, match="all 16 nodes of this allocation are there already"):
        Meeting(tmp_path, "t", 16).rank(RANK, {})
    assert Meeting(tmp_path, "another ticket", 16).rank(RANK, {}) == 0


def test_the_engines_rank_counts(tmp_path: Path) -> None:
    meeting = Meeting(tmp_path, "t", 4)
    assert [meeting.rank("X", {"X": "3", RANK: "1"}) for _ in range(2)] == [3, 3]


@pytest.mark.parametrize("given", ["4", "-1", "", "one", "²"])
def test_a_rank_that_is_none(given: str, tmp_path: Path) -> None:
    with pytest.raises(CannotMeet, match="and this allocation has 4 nodes"):
        Meeting(tmp_path, "t", 4).rank("X", {"X": given})


def test_ranks_of_a_role_come_behind_those_of_the_role_before(tmp_path: Path) -> None:
    """Mutation: the first worker is rank 0, as the chief is."""
    meeting = Meeting(tmp_path, "t", 4)
    assert meeting.rank("X", {"X": "1", "BEQUEATH_RANK_OFFSET": "2"}) == 3
    for odd in ("3", "", "-1", "one"):
        with pytest.raises(CannotMeet, match="BEQUEATH_RANK_OFFSET is"):
            meeting.rank("X", {"X": "1", "BEQUEATH_RANK_OFFSET": odd})


def test_the_leader_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file is for its owner. Mutation: a name that is not there is opened."""
    meeting = Meeting(tmp_path, "the ticket", 2)
    meeting.rank(RANK, {})
    opened: list[str] = []
    read = Path.read_bytes

    def note(path: Path) -> bytes:
        opened.append(path.name)
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", note)
    pauses = iter([None, None])

    def pause(_seconds: float) -> None:
        if next(pauses, "come") == "come":
            meeting.open(LEADER)

    monkeypatch.setattr(meetings.time, "sleep", pause)
    assert meeting.leader() == LEADER
    assert opened == ["leader"]
    (folder,) = tmp_path.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "leader").stat().st_mode) == 0o600
    assert "the ticket" not in folder.name
    meeting.close()
    assert [path.stat().st_size for path in tmp_path.iterdir()] == [0], "a mark"
    with pytest.raises(CannotMeet, match="over already"):
        meeting.leader()


def test_a_leader_that_never_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meeting = Meeting(tmp_path, "t", 2)
    meeting.rank(RANK, {})
    monkeypatch.setattr(meetings.time, "sleep", lambda seconds: None)
    now = iter(range(0, 1000, 100))
    with pytest.raises(CannotMeet, match="has not come within 300 s"):
        meeting.leader(300.0, lambda: next(now))


@pytest.mark.parametrize(
    "head, given, address",
    [
        ("tcp://10.0.0.1:7", "127.0.0.9", "127.0.0.9"),
        ("", "localhost", "127.0.0.1"),
        ("", "no.such.name.invalid", "no.such.name.invalid"),
    ],
)
def test_a_node_may_be_given_its_address(head: str, given: str, address: str) -> None:
    assert own_address(head, {"BEQUEATH_NODE_ADDRESS": given}).replace("::1", "127.0.0.1") == (
        address
    )


@pytest.mark.parametrize("variable", ["RANK_HERE", "NOWHERE"])
def test_who_comes_when_all_is_over_does_not_wait(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod that was scheduled late, with a rank of the engine's or by claim. Mutation: it waits a
    quarter of an hour for somebody who has left; a rank 0 that is late leads nobody."""
    monkeypatch.setenv("RANK_HERE", "1")
    Meeting(tmp_path, "t", 3).rank("NOWHERE")
    first = Meeting(tmp_path, "t", 3)
    first.open(Leader("tcp://h:1", "h", "k", "s"))
    first.close()
    with pytest.raises(CannotMeet, match="over already"):
        Meeting(tmp_path, "t", 3).rank(variable)
    assert Meeting(tmp_path, "next", 3).rank("NOWHERE") == 0, "the next one begins anew"


def test_who_waits_when_it_ends_leaves_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It made the folder anew in the moment in which rank 0 has left."""
    late = Meeting(tmp_path, "t", 3)
    Meeting(tmp_path, "t", 3).rank("NOWHERE")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            Meeting(tmp_path, "t", 3).close()
            (tmp_path / next(iter(os.listdir(tmp_path))).removesuffix(".over")).mkdir()

    monkeypatch.setattr(meetings.time, "sleep", pause)
    with pytest.raises(CannotMeet, match="over already"):
        late.leader(limit_s=1e9, clock=lambda: 0.0)
    assert len(pauses) == 2


def test_who_has_waited_in_vain_lets_nobody_wait_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rank 0 comes after the others have given it up. Mutation: it waits for them as long again."""
    meeting = Meeting(tmp_path, "t", 2)
    monkeypatch.setenv("RANK_HERE", "1")
    meeting.rank("RANK_HERE")
    times = iter([0.0, 1e6, 1e6])
    with pytest.raises(CannotMeet, match="has not come within"):
        meeting.leader(clock=lambda: next(times))
    monkeypatch.setenv("RANK_HERE", "0")
    with pytest.raises(CannotMeet, match="over already"):
        Meeting(tmp_path, "t", 2).rank("RANK_HERE")


def test_marks_of_former_allocations_do_not_pile_up(tmp_path: Path) -> None:
    for number in range(20):
        meeting = Meeting(tmp_path, str(number), 2)
        meeting.rank("NOWHERE")
        meeting.close()
    assert len(list(tmp_path.iterdir())) <= meetings.MOST_OVER


@pytest.mark.parametrize("head", ["", "ipc:///x", "tcp://127.0.0.1:5", "folder:///x", "tcp://?:x"])
def test_a_node_finds_some_address(head: str) -> None:
    assert own_address(head, {})


def test_names_of_the_users_own_are_left_alone() -> None:
    given = rank_variables(1, nodes=2, host="h", port=5, given={"MASTER_PORT", "RANK"})
    assert {"MASTER_PORT", "RANK"}.isdisjoint(given)
    assert (given["PET_MASTER_PORT"], given["NODE_RANK"]) == ("5", "1")


# -- rank 0's side ---------------------------------------------------------------------------------


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Rig:
    """Rank 0's side of an allocation of three nodes."""

    def __init__(self) -> None:
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.clock = Clock()
        self.changes = 0
        self.sockets: list[zmq.Socket[bytes]] = []
        self.followers = Followers(self.context, 3, "127.0.0.1", self.clock)
        self.followers.on_change = self._change

    def _change(self) -> None:
        self.changes += 1

    def dial(self, name: str) -> zmq.Socket[bytes]:
        leader = self.followers.leader
        public, secret = zmq.curve_keypair()
        keys = (leader.server_key, public.decode(), secret.decode())
        socket = connect(self.context, Endpoint(leader.address, name, *keys))
        self.sockets.append(socket)
        return socket

    def report(self, rank: int, start: str = "a", **more: Any) -> Report:
        given = {"token": self.followers.leader.token, "host": f"h{rank}", **more}
        return Report(rank=rank, start=start, **given)

    def hear(self, socket: zmq.Socket[bytes], report: Report) -> None:
        """Send a report."""
        socket.send(encode(report))
        assert self.followers.socket.poll(30_000)
        self.followers.receive()

    def next(self, socket: zmq.Socket[bytes]) -> Wish | None:
        """What comes back."""
        assert socket.poll(30_000)
        return decode(socket.recv(), Wish)

    def answer(self, socket: zmq.Socket[bytes], report: Report) -> Wish | None:
        """Send a report; what comes back."""
        self.hear(socket, report)
        return self.next(socket)

    def is_silent(self, socket: zmq.Socket[bytes]) -> bool:
        return not socket.poll(100)


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    for socket in (*made.sockets, made.followers.socket):
        socket.close(linger=0)
    made.context.term()


def job() -> Job:
    return Job(SessionFile(SESSION_VERSION, "", "", 7, 1, "/f", "{}"), {"RANK": "1"})


def test_a_follower_gets_its_job_until_it_has_it(rig: Rig) -> None:
    """Mutation: the job is sent once, and lost with a connection; or each second, whatever."""
    one = rig.dial("1:a")
    assert rig.followers.missing == [1, 2]
    assert rig.answer(one, rig.report(1)) == Wish()
    assert rig.followers.missing == [2]
    rig.followers.begin((7, 1), {1: job(), 2: job()})
    assert rig.next(one) == Wish((7, 1), job())
    rig.followers.tick()
    assert rig.next(one) == Wish((7, 1), job()), "as long as it does not report it"
    rig.hear(one, rig.report(1, key=(7, 1), phase="running"))
    assert rig.is_silent(one)
    rig.followers.tick()
    assert rig.next(one) == Wish((7, 1))
    rig.followers.signal((6, 1), 15)
    assert rig.is_silent(one), "an attempt before"
    rig.followers.signal((7, 1), 9)
    rig.followers.signal((7, 1), 15)
    assert rig.next(one) == Wish((7, 1), None, 9)
    rig.followers.tick()
    assert rig.next(one) == Wish((7, 1), None, 9), "no way back"


def test_one_that_comes_late_gets_the_job(rig: Rig) -> None:
    rig.followers.begin((7, 1), {1: job(), 2: job()})
    assert rig.answer(rig.dial("2:a"), rig.report(2)) == Wish((7, 1), job())


@pytest.mark.parametrize("token", ["", "wrong"])
def test_strangers_get_no_answer(rig: Rig, token: str) -> None:
    """Mutation: whoever knows the port is a follower."""
    one = rig.dial("1:a")
    rig.hear(one, rig.report(1, token=token))
    assert rig.is_silent(one)
    one.send(b"\xc1 garbage")
    one.send(b"\x81\xa1x" + b"\x91" * 9000)  # nested too deep
    one.send_multipart([b"a", b"b", b"c"])
    wait_until(lambda: rig.followers.socket.poll(100), "they come")
    rig.followers.receive()
    assert rig.followers.missing == [1, 2]
    assert rig.changes == 0


@pytest.mark.parametrize("rank, start", [(0, "a"), (3, "a"), (-1, "a"), (1, "b")])
def test_a_rank_that_is_there_or_is_none_is_sent_away(rig: Rig, rank: int, start: str) -> None:
    """Mutation: the second process of a rank takes it over, and two run."""
    rig.hear(rig.dial("1:a"), rig.report(1))
    wish = rig.answer(rig.dial("x"), rig.report(rank, start))
    assert wish is not None
    assert wish.leave == "another process has its rank in this allocation"
    assert rig.followers.missing == [2]


def test_a_silent_one_is_lost_for_good(rig: Rig) -> None:
    one = rig.dial("1:a")
    rig.hear(one, rig.report(1))
    rig.clock.now = SILENT_S
    rig.followers.tick()
    assert not rig.followers.lost
    rig.clock.now = SILENT_S + 1
    rig.followers.tick()
    assert rig.followers.lost == "node h1 (rank 1) of its allocation is lost"
    assert rig.changes == 2
    rig.hear(one, rig.report(1))
    assert rig.followers.lost, "its rank was given up already"


def test_a_node_that_never_comes_is_said_and_then_not_waited_for(tmp_path: Path) -> None:
    """Two allocations may each have half of what the other one waits for."""
    context, clock = zmq.Context[Any](), Clock()
    config = AgentConfig(
        worker="w",
        slots=1,
        head=Endpoint("ipc:///nowhere"),
        epoch=1,
        run_folder="",
        experiment_folder=str(tmp_path),
        trial=TrialSpec("/code", command="true"),
        weights_root="/w",
        nodes=3,
    )
    nodes = Nodes(context, config, Meeting(tmp_path, "t", 3), clock)
    try:
        assert (nodes.take_trouble(), nodes.lost) == (None, "")
        clock.now = PATIENCE_S
        assert "rank 1, 2" in (nodes.take_trouble() or "")
        clock.now = meetings.MEET_S
        assert nodes.lost == ""
        clock.now += 1
        assert nodes.lost == "rank 1 of its allocation has not come within 900 s"
    finally:
        nodes.close()
        context.term()


def test_only_what_is_new_is_a_change(rig: Rig) -> None:
    one = rig.dial("1:a")
    for _ in range(3):
        rig.hear(one, rig.report(1))
    assert rig.changes == 1
    rig.hear(one, rig.report(1, leaving=True))
    assert (rig.changes, rig.followers.leaving) == (2, True)


def test_all_are_sent_away_at_the_end(rig: Rig) -> None:
    one = rig.dial("1:a")
    rig.answer(one, rig.report(1))
    rig.followers.close("over")
    assert rig.next(one) == Wish(leave="over")
