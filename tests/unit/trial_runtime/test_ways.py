"""Which of several ways to its head an agent takes: the first that gets an answer."""

from __future__ import annotations

import errno
import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq
from msgspec.structs import replace

from dispatcher.channel import CurveKeys, FolderEndpoint, Router
from tests.support.ports import free_port
from tests.support.processes import wait_until
from tests.support.workers import agent_config
from trial_runtime import wire
from trial_runtime.agent.link import better_ways, head_link
from trial_runtime.agent.link import ways as module
from trial_runtime.agent.link.better_ways import FIRST_PAUSE_S, LONGEST_PAUSE_S, BetterWays
from trial_runtime.agent.link.head_link import HeadLink
from trial_runtime.agent.link.outbox import Outbox
from trial_runtime.agent.link.ways import STAY_S, TRY_S, TRY_SLOW_S, Ways
from trial_runtime.endpoint import FOLDER, Endpoint, JumpHost
from trial_runtime.facts import AttemptStarted, TrialId
from trial_runtime.folder_line.socket import stands
from trial_runtime.tunnel.tunnel import Tunnel

DIRECT = Endpoint("tcp://10.0.0.9:1", way="direct")
TUNNEL = Endpoint("tcp://127.0.0.1:1", way="tunnel", jump=JumpHost("g", 22, "me", ("k",), ("f",)))
SHARED = Endpoint(f"{FOLDER}/shared/line", way="folder")
ALL = (DIRECT, TUNNEL, SHARED)
EPOCH = 1
SECRET = "agent:w:0123456789abcdef"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def tries(ways: Ways, clock: Clock, seconds: float, *, stands: bool = False) -> list[str]:
    """The ways that are taken one after another while nothing is heard for so long."""
    taken = [ways.taken.way]
    begun = clock.now
    while clock.now < begun + seconds:
        clock.now += 0.5
        chosen = ways.choose(ALL, stands=stands, silent_s=clock.now - begun)
        assert chosen == ways.taken
        if chosen.way != taken[-1]:
            taken.append(chosen.way)
    return taken


def test_each_is_tried_for_a_while_and_again_from_the_first(clock: Clock) -> None:
    """Mutations: the first is tried for ever; a login gets no longer than a connection."""
    ways = Ways(ALL, clock)
    assert tries(ways, clock, TRY_S - 1) == ["direct"]
    assert tries(ways, clock, 2) == ["direct", "tunnel"]
    assert tries(ways, clock, TRY_SLOW_S - 2) == ["tunnel"]
    assert tries(ways, clock, 2) == ["tunnel", "folder"]
    assert tries(ways, clock, TRY_SLOW_S + 2) == ["folder", "direct"]


def test_the_one_that_got_an_answer_is_kept(clock: Clock) -> None:
    """A head that died comes back where it was. Mutation: agents leave a way after some seconds
    of silence, and are all at the slowest one when the head is back."""
    ways = Ways(ALL, clock)
    assert tries(ways, clock, TRY_S - 1, stands=True) == ["direct"]
    assert tries(ways, clock, STAY_S, stands=False) == ["direct"]
    assert tries(ways, clock, STAY_S + 2, stands=False) == ["direct", "tunnel"]


def test_silence_of_another_way_is_not_counted(clock: Clock) -> None:
    """Mutation: one that stands is left at once, since the head was silent elsewhere."""
    ways = Ways(ALL, clock)
    clock.now += 10 * STAY_S
    assert ways.choose(ALL, stands=False, silent_s=10 * STAY_S).way == "tunnel"
    clock.now += TRY_SLOW_S - 1
    assert ways.choose(ALL, stands=True, silent_s=20 * STAY_S).way == "tunnel"


def test_a_single_way_is_kept(clock: Clock) -> None:
    ways = Ways((DIRECT,), clock)
    clock.now += 10 * STAY_S
    assert ways.choose((DIRECT,), stands=False, silent_s=10 * STAY_S) == DIRECT


def test_a_head_at_another_address_is_looked_for_by_the_same_way(clock: Clock) -> None:
    """Mutation: it is looked for from the first way on."""
    ways = Ways(ALL, clock)
    clock.now += TRY_S + 1
    ways.choose(ALL, stands=False, silent_s=TRY_S + 1)
    moved = replace(TUNNEL, address="tcp://127.0.0.1:2")
    known = (replace(DIRECT, address="tcp://10.0.0.9:2"), moved, SHARED)
    clock.now += TRY_SLOW_S - 1
    assert ways.choose(known, stands=False, silent_s=90.0) == moved
    clock.now += TRY_SLOW_S - 1
    assert ways.choose(known, stands=False, silent_s=120.0) == moved, "it was not tried long"
    assert ways.choose((SHARED,), stands=False, silent_s=1.0) == SHARED, "the way has gone"


class Tried:
    """Connections that are tried: by which ways, and which of them stand."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.closed: list[str] = []
        self.stand: set[str] = set()

    def open(self, endpoint: Endpoint) -> Tried.Connection:
        assert not endpoint.routing_id, "the head would take it for the agent"
        self.opened.append(endpoint.way)
        return Tried.Connection(self, endpoint.way)

    class Connection:
        def __init__(self, tried: Tried, way: str) -> None:
            self.tried, self.way = tried, way

        @property
        def stands(self) -> bool:
            return self.way in self.tried.stand

        def close(self) -> None:
            self.tried.closed.append(self.way)


def test_better_ways_are_tried_in_turn_after_pauses_that_grow_to_a_bound(clock: Clock) -> None:
    """Mutations: a worse way is for ever; each is tried at every heartbeat; the pauses grow
    without a bound; a connection that was tried stays open."""
    tried = Tried()
    better = BetterWays(tried.open, clock)
    begun = [clock.now]
    while clock.now < begun[0] + 7200:
        before = len(tried.opened)
        assert better.look(lambda: (DIRECT, TUNNEL)) is None
        if len(tried.opened) > before and tried.opened[-1] == "direct":
            begun.append(clock.now)
        clock.now += 1
    assert tried.opened[:4] == ["direct", "tunnel", "direct", "tunnel"]
    assert len(tried.opened) - len(tried.closed) <= 1
    pauses = [later - sooner for sooner, later in itertools.pairwise(begun)]
    assert pauses[0] == pytest.approx(FIRST_PAUSE_S, abs=2)
    assert pauses == sorted(pauses)
    each = TRY_S + TRY_SLOW_S
    assert pauses[-1] == pytest.approx(LONGEST_PAUSE_S + each, abs=4)


def test_one_that_answers_is_returned_and_its_try_is_closed(clock: Clock) -> None:
    tried = Tried()
    tried.stand = {"tunnel"}
    better = BetterWays(tried.open, clock)
    found = None
    while found is None and clock.now < 1000:
        found = better.look(lambda: (DIRECT, TUNNEL))
        clock.now += 1
    assert found == TUNNEL
    assert tried.opened == tried.closed == ["direct", "tunnel"]


def test_where_nothing_is_better_nothing_is_tried(clock: Clock) -> None:
    """Mutations: the way that is taken is tried as well; a folder is tried as a connection, which
    would take the line from the agent that has it."""
    tried = Tried()
    better = BetterWays(tried.open, clock)
    for _ in range(4000):
        assert better.look(lambda: ()) is None
        clock.now += 1
    assert not tried.opened
    ways = Ways((SHARED, DIRECT, TUNNEL), clock)
    assert ways.better((SHARED, DIRECT, TUNNEL)) == ()
    clock.now += TRY_SLOW_S + 1
    assert ways.choose((SHARED, DIRECT, TUNNEL), stands=False, silent_s=99.0) == DIRECT
    assert ways.better((SHARED, DIRECT, TUNNEL)) == ()
    clock.now += TRY_S + 1
    assert ways.choose((SHARED, DIRECT, TUNNEL), stands=False, silent_s=99.0) == TUNNEL
    assert ways.better((SHARED, DIRECT, TUNNEL)) == (DIRECT,)
    assert ways.take(DIRECT) == DIRECT
    assert ways.taken == DIRECT


def test_a_try_ends_where_the_head_is_silent_meanwhile(clock: Clock) -> None:
    """Then all ways are tried as ever. Mutation: the try goes on beside that, for ever."""
    tried = Tried()
    better = BetterWays(tried.open, clock)
    better.look(lambda: (DIRECT,))
    clock.now += FIRST_PAUSE_S
    better.look(lambda: (DIRECT,))
    assert tried.opened == ["direct"]
    better.stop()
    assert tried.closed == ["direct"]


@pytest.mark.parametrize("error", [OSError("no space"), zmq.ZMQError(errno.EMFILE)])
def test_a_try_that_cannot_begin_harms_nobody(clock: Clock, error: Exception) -> None:
    """There is no room for one more socket, or its file; the worse way carries everything.
    Mutations: the agent ends of it; it tries again at each heartbeat; the ways behind it are not
    tried."""
    opened: list[tuple[str, float]] = []

    def connect(endpoint: Endpoint) -> Tried.Connection:
        opened.append((endpoint.way, clock.now - begun))
        raise error

    begun = clock.now
    better = BetterWays(connect, clock)
    while clock.now < begun + 4 * FIRST_PAUSE_S:
        assert better.look(lambda: (DIRECT, TUNNEL)) is None
        clock.now += 1
    assert [way for way, _ in opened] == ["direct", "tunnel"] * 2
    assert opened[2][1] - opened[0][1] == pytest.approx(2 * FIRST_PAUSE_S, abs=2)


def test_a_tunnel_that_cannot_begin_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket file has a name of a hundred characters at most. Mutation: a folder stays of each
    try, and there are some every hour."""
    deep = tmp_path / ("deep" * 30)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    jump = JumpHost("127.0.0.1", 9, "u", ("ssh-ed25519 AAAA",), ("~/none",))
    with pytest.raises(OSError, match="too long"):
        Tunnel(replace(TUNNEL, jump=jump))
    assert not list(deep.iterdir())


@pytest.fixture
def router() -> Iterator[Router]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    made = Router(context)
    yield made
    made.close()
    context.destroy(linger=0)


Agent = Callable[..., HeadLink]


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    """An agent's side of the connection by some ways."""
    monkeypatch.setattr(module, "TRY_S", 0.3)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    links: list[HeadLink] = []

    def make(*ways: Endpoint, outbox: Outbox | None = None) -> HeadLink:
        head, *others = (replace(each, routing_id=SECRET) for each in ways)
        config = replace(agent_config(tmp_path), worker="w", head=head, ways=tuple(others))
        links.append(HeadLink(context, config, outbox or Outbox(config.spool_path), list))
        return links[-1]

    yield make
    for link in links:
        link.close()
    context.destroy(linger=0)


NO_ROOM = [OSError("no space"), zmq.ZMQError(errno.EMFILE), RuntimeError("no new thread")]


class Connecting:
    """Connects as the product does, but by ways whose sockets cannot be made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: Exception, *closed: str) -> None:
        self.tried: list[str] = []
        self._real = head_link.connect_to_head
        self._error = error
        self.closed = {*closed}
        monkeypatch.setattr(head_link, "connect_to_head", self)

    def __call__(
        self, context: zmq.Context[zmq.Socket[bytes]], endpoint: Endpoint
    ) -> zmq.Socket[bytes]:
        self.tried.append(endpoint.way)
        if endpoint.way in self.closed:
            raise self._error
        return self._real(context, endpoint)


class Head:
    """The head's side: takes numbered messages in order, and acknowledges them."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._link = router.admit("w", SECRET)
        self.ways: list[str] = []
        self.numbers: list[int] = []

    def serve(self) -> None:
        for heard in self._router.poll(0.01):
            for message in wire.from_agent(heard.payload).messages:
                if isinstance(message, wire.AgentHello):
                    self.ways.append(message.way)
                elif isinstance(message, wire.AttemptMessages):
                    for number in range(message.first, message.first + len(message.messages)):
                        if number == len(self.numbers) + 1:
                            self.numbers.append(number)
        answer = wire.encode_order(wire.Ack(len(self.numbers)))
        self._link.send(wire.frame(wire.HeadFrame(EPOCH, [answer])))


def hello_of(router: Router, link: HeadLink) -> wire.AgentHello:
    """The first hello, as the agent's loop brings it about."""
    for _ in range(1200):
        link.reconnect()
        link.heartbeat(0, {})
        for heard in router.poll(0.1):
            for message in wire.from_agent(heard.payload).messages:
                if isinstance(message, wire.AgentHello):
                    return message
    raise AssertionError(router.refusals())


def test_where_no_port_is_reached_the_folder_is_taken(
    router: Router, agent: Agent, tmp_path: Path
) -> None:
    """Both ends are real. Mutations: the second way is never tried; the head is not told which one
    was taken."""
    router.admit("w", SECRET)
    endpoint = FolderEndpoint(router)
    endpoint.add(tmp_path / "line", SECRET)
    endpoint.open()
    try:
        keys = CurveKeys.fresh()
        closed = Endpoint(
            f"tcp://127.0.0.1:{free_port()}",
            server_key=keys.public,
            public_key=keys.public,
            secret_key=keys.secret,
            way="direct",
        )
        link = agent(closed, Endpoint(f"{FOLDER}{tmp_path / 'line'}", way="folder"))
        assert hello_of(router, link).way == "folder"
    finally:
        endpoint.close()


def test_a_port_that_answers_is_taken_and_kept(router: Router, agent: Agent) -> None:
    """Mutation: a head that has not answered the hello yet counts as one that is not there."""
    server, own = CurveKeys.fresh(), CurveKeys.fresh()
    router.admit("w", SECRET)
    address = router.bind_tcp("127.0.0.1", 0, server, [own.public])
    there = Endpoint(address, "", server.public, own.public, own.secret, way="direct")
    link = agent(there, Endpoint(f"{FOLDER}/nowhere", way="folder"))
    assert hello_of(router, link).way == "direct"
    for _ in range(10):
        router.poll(0.1)
        assert not link.reconnect()


def at_port(router: Router, way: str = "direct") -> Endpoint:
    """A way to a real head."""
    server, own = CurveKeys.fresh(), CurveKeys.fresh()
    address = router.bind_tcp("127.0.0.1", 0, server, [own.public])
    return Endpoint(address, "", server.public, own.public, own.secret, way=way)


@pytest.mark.parametrize("error", NO_ROOM)
def test_a_way_whose_socket_cannot_be_made_is_passed_over(
    router: Router, agent: Agent, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The head is silent, and the agent has no room for one more socket. Mutations: it ends; it has
    closed the one that it had, by which the head comes back; the ways behind it are not tried."""
    router.admit("w", SECRET)
    link = agent(at_port(router), replace(SHARED, address=f"{FOLDER}/nowhere"), TUNNEL)
    assert hello_of(router, link).way == "direct"
    connecting = Connecting(monkeypatch, error, "folder", "tunnel")
    monkeypatch.setattr(module, "STAY_S", -1.0)
    before = link.socket
    assert not link.reconnect()
    assert connecting.tried == ["folder", "tunnel"]
    assert link.socket is before
    assert link.greeted
    while router.poll(0.2):
        pass
    link.heartbeat(0, {})
    wait_until(lambda: router.poll(0.1), "the head hears by the way that it had")


def test_the_next_way_is_taken_where_one_cannot_be_tried(
    router: Router, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    router.admit("w", SECRET)
    first, last = at_port(router), at_port(router, "tunnel")
    link = agent(first, replace(SHARED, address=f"{FOLDER}/nowhere"), last)
    assert hello_of(router, link).way == "direct"
    Connecting(monkeypatch, NO_ROOM[0], "folder")
    monkeypatch.setattr(module, "STAY_S", -1.0)
    assert link.reconnect()
    monkeypatch.setattr(module, "STAY_S", STAY_S)
    monkeypatch.setattr(module, "TRY_S", TRY_S)
    assert hello_of(router, link).way == "tunnel"


def test_a_better_way_that_cannot_be_taken_changes_nothing(
    router: Router, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leads to the head again, and there is no room to go over. Mutations: the worse one is left
    all the same; the better one is never tried again."""
    monkeypatch.setattr(better_ways, "FIRST_PAUSE_S", 0.1)
    monkeypatch.setattr(better_ways, "LONGEST_PAUSE_S", 0.2)
    head = Head(router)
    endpoint = FolderEndpoint(router)
    endpoint.add(tmp_path / "line", SECRET)
    endpoint.open()
    server, own, port = CurveKeys.fresh(), CurveKeys.fresh(), free_port()
    address = f"tcp://127.0.0.1:{port}"
    direct = Endpoint(address, "", server.public, own.public, own.secret, way="direct")
    link = agent(direct, Endpoint(f"{FOLDER}{tmp_path / 'line'}", way="folder"))

    def turn() -> None:
        link.receive()
        link.go_back()
        link.heartbeat(0, {})
        head.serve()

    def by_the_folder() -> bool:
        link.reconnect()
        turn()
        return head.ways == ["folder"]

    def tried_again() -> bool:
        turn()
        return len(connecting.tried) >= 2

    def has_gone_back() -> bool:
        turn()
        return head.ways[-1] == "direct"

    try:
        wait_until(by_the_folder, "it comes by the folder")
        connecting = Connecting(monkeypatch, NO_ROOM[1], "direct")
        router.bind_tcp("127.0.0.1", port, server, [own.public])
        before = link.socket
        wait_until(tried_again, "it tries to go back, and again")
        assert link.socket is before
        connecting.closed.clear()
        wait_until(has_gone_back, "it goes back once there is room")
    finally:
        endpoint.close()


def test_an_agent_on_a_folder_comes_back_to_the_port_and_loses_nothing(
    router: Router, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ends are real. Mutations: it stays where it is; what was under way when it went over is
    not sent again; the head hears no hello by the new way."""
    monkeypatch.setattr(better_ways, "FIRST_PAUSE_S", 0.2)
    head = Head(router)
    endpoint = FolderEndpoint(router)
    endpoint.add(tmp_path / "line", SECRET)
    endpoint.open()
    server, own, port = CurveKeys.fresh(), CurveKeys.fresh(), free_port()
    address = f"tcp://127.0.0.1:{port}"
    direct = Endpoint(address, "", server.public, own.public, own.secret, way="direct")
    outbox = Outbox(str(tmp_path / "spool"))
    try:
        link = agent(direct, Endpoint(f"{FOLDER}{tmp_path / 'line'}", way="folder"), outbox=outbox)
        while not head.ways:
            link.reconnect()
            link.heartbeat(0, {})
            head.serve()
        assert head.ways == ["folder"]
        router.bind_tcp("127.0.0.1", port, server, [own.public])
        reported = 0
        while head.ways[-1] != "direct" or reported < 300:
            outbox.add(AttemptStarted(TrialId(reported + 1), 1, 7), urgent=False)
            reported += 1
            link.flush()
            if reported % 5 == 0:  # a heartbeat, as the agent's loop has them
                link.receive()
                link.go_back()
                link.heartbeat(0, {})
            head.serve()
            assert reported < 3000, router.refusals()
        for _ in range(200):
            link.receive()
            link.heartbeat(0, {})
            link.flush()
            head.serve()
            if outbox.first > reported:
                break
        assert head.numbers == list(range(1, reported + 1)), "each once, in order"
        assert not link.go_back()
        assert not router.refusals()
    finally:
        endpoint.close()


def test_the_way_of_a_head_that_spoke_is_kept_when_its_connection_breaks(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its agent never asked for a way meanwhile, since the head was not quiet. Mutation: only a
    connection that stands while the head is quiet counts as an answer."""
    monkeypatch.setattr(module, "TRY_S", 0.0)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    router = Router(context)
    server, own = CurveKeys.fresh(), CurveKeys.fresh()
    head = Head(router)
    address = router.bind_tcp("127.0.0.1", 0, server, [own.public])
    direct = Endpoint(address, "", server.public, own.public, own.secret, way="direct")
    link = agent(direct, Endpoint(f"{FOLDER}{tmp_path / 'line'}", way="folder"))
    while not head.ways:
        link.heartbeat(0, {})
        head.serve()
    wait_until(lambda: link.socket.poll(100), "the head is heard")
    link.receive()
    router.close()
    context.destroy(linger=0)
    wait_until(lambda: not stands(link.socket), "the connection is broken")
    assert link.silence_s < STAY_S
    assert not link.reconnect(), "the head comes back where it was"
