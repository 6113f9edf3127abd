"""The head's ROUTER over real sockets: who may speak, how much, and what waits for whom."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import zmq

from dispatcher.channel import CurveKeys, PeerMessage, Router
from dispatcher.channel.router import context_for
from dispatcher.control.client import RunFile
from dispatcher.errors import PermanentBackendError
from tests.support.peers import try_to_say
from trial_runtime.endpoint import MAX_MESSAGE_BYTES, Endpoint, connect
from trial_runtime.session_file import SessionFile

Context = zmq.Context[zmq.Socket[bytes]]


@pytest.fixture
def context() -> Iterator[Context]:
    with zmq.Context() as made:
        yield made


@pytest.fixture
def router(context: Context) -> Iterator[Router]:
    made = Router(context)
    yield made
    made.close()


@pytest.fixture
def address(router: Router, tmp_path_factory: pytest.TempPathFactory) -> str:
    return router.bind_ipc(tmp_path_factory.mktemp("r") / "head")


def hear(router: Router, count: int = 1) -> list[PeerMessage]:
    """Exactly so many messages; fails if they do not come in two minutes."""
    said: list[PeerMessage] = []
    for _ in range(1200):
        said.extend(router.poll(0.1))
        if len(said) >= count:
            return said
    raise AssertionError(f"heard {said}")


def test_a_known_peer_is_heard_and_a_stranger_counted(
    context: Context, router: Router, address: str
) -> None:
    router.admit("tuner", "tuner:secret")
    with (
        connect(context, Endpoint(address, "tuner:guess")) as stranger,
        connect(context, Endpoint(address, "tuner:secret")) as known,
    ):
        stranger.send(b"let me in")
        while not router.refused:
            assert router.poll(10.0) == []
        known.send(b"hello")
        assert hear(router) == [PeerMessage("tuner", b"tuner:secret", b"hello")]
    assert router.refused == 1


def test_what_is_sent_before_the_peer_is_there_waits_in_order(
    context: Context, router: Router, address: str
) -> None:
    link = router.admit("agent", "agent:x")
    for number in range(3):
        assert link.send(b"%d" % number)
    with connect(context, Endpoint(address, "agent:x")) as peer:
        peer.send(b"hello")
        hear(router)
        link.send(b"3")
        assert [peer.recv() for _ in range(4)] == [b"0", b"1", b"2", b"3"]


def test_a_renewed_link_hears_its_successor_only(
    context: Context, router: Router, address: str
) -> None:
    link = router.admit("tuner", "tuner:old")
    link.send(b"for the old one")
    link.renew("tuner:new")
    with (
        connect(context, Endpoint(address, "tuner:old")) as old,
        connect(context, Endpoint(address, "tuner:new")) as new,
    ):
        old.send(b"I am still here")
        while not router.refused:
            assert router.poll(10.0) == []
        new.send(b"hello")
        assert hear(router)[0].peer == b"tuner:new"
        link.send(b"welcome")
        assert new.recv() == b"welcome"


def test_what_one_had_sent_is_nobodys_once_its_successor_is_heard(
    context: Context, router: Router, address: str
) -> None:
    """An agent numbers its words from where it begins: those of the one before, taken for its
    own, would stand for words that are never read. Mutation: the first one keeps the id."""
    router.admit("agent", "agent:x")
    before: list[bytes] = []
    with ExitStack() as stack:
        for life in range(10):
            peer = stack.enter_context(connect(context, Endpoint(address, "agent:x")))
            peer.send(b"hello %d" % life)
            heard: list[bytes] = []
            while b"hello %d" % life not in heard:
                heard += [said.payload for said in hear(router)]
            after = heard[heard.index(b"hello %d" % life) + 1 :]
            after += [said.payload for said in router.poll(0.05)]
            assert not [payload for payload in after if payload in before]
            before = [b"%d %d" % (life, number) for number in range(900)]
            for payload in before:
                peer.send(payload)


def test_too_large_a_message_closes_its_peer_only(
    context: Context, router: Router, address: str
) -> None:
    router.admit("one", "agent:one")
    router.admit("two", "agent:two")
    with (
        connect(context, Endpoint(address, "agent:one")) as one,
        connect(context, Endpoint(address, "agent:two")) as two,
    ):
        one.send(bytes(MAX_MESSAGE_BYTES + 1))
        two.send(b"fine")
        assert [s.payload for s in hear(router)] == [b"fine"]


def test_guests_need_the_token(context: Context, router: Router, address: str) -> None:
    router.admit_guests("token")
    with connect(context, Endpoint(address, "control:token:1")) as guest:
        guest.send(b"ping")
        (said,) = hear(router)
        assert said.owner == ""
        assert router.send(said.peer, b"pong")
        assert guest.recv() == b"pong"


def test_curve_lets_the_allowed_key_through_and_no_other(
    context: Context, router: Router, tmp_path: Path
) -> None:
    head, good, bad = CurveKeys.kept(tmp_path / "head"), CurveKeys.fresh(), CurveKeys.fresh()
    assert (tmp_path / "head").stat().st_mode & 0o777 == 0o600
    assert CurveKeys.kept(tmp_path / "head") == head
    address = router.bind_tcp("127.0.0.1", 0, head, [good.public])
    router.admit("agent", "agent:x")
    with (
        connect(context, Endpoint(address, "agent:x", head.public, bad.public, bad.secret)) as liar,
        connect(context, Endpoint(address, "agent:x")) as plain,
        connect(context, Endpoint(address, "agent:x", head.public, good.public, good.secret)) as ok,
    ):
        try_to_say(liar, b"lie")
        try_to_say(plain, b"plain")
        ok.send(b"truth")
        assert [s.payload for s in hear(router)] == [b"truth"]
    assert router.refused == 0  # the others did not even get as far


def test_addresses_that_cannot_be_had(router: Router, context: Context, tmp_path: Path) -> None:
    with pytest.raises(PermanentBackendError, match="longer than"):
        router.bind_ipc(tmp_path / ("x" * 120))
    with context.socket(zmq.REP) as other:
        port = other.bind_to_random_port("tcp://127.0.0.1")
        with pytest.raises(PermanentBackendError, match="cannot listen") as raised:
            router.bind_tcp("127.0.0.1", port, CurveKeys.fresh(), [])
    assert "another program" in raised.value.hint


def test_a_port_that_a_head_before_us_still_holds(context: Context) -> None:
    """Only where the user asked for none in particular."""
    keys = CurveKeys.fresh()
    with zmq.Context() as second, zmq.Context() as third:  # keys are a context's own
        routers = [Router(each) for each in (context, second, third)]
        taken = routers[0].bind_tcp("127.0.0.1", 0, keys, [])
        port = int(taken.rpartition(":")[2])
        try:
            with pytest.raises(PermanentBackendError):
                routers[1].bind_tcp("127.0.0.1", port, keys, [])
            address = routers[2].bind_tcp("127.0.0.1", port, keys, [], or_any=True)
            assert address.startswith("tcp://127.0.0.1:")
            assert address != taken
        finally:
            for each in routers:
                each.close()


def test_what_is_refused_is_counted_by_reason(
    context: Context, router: Router, tmp_path: Path, address: str
) -> None:
    head, foreign = CurveKeys.fresh(), CurveKeys.fresh()
    tcp = router.bind_tcp("127.0.0.1", 0, head, [])
    router.admit("agent", "agent:x")
    with (
        connect(context, Endpoint(address, "agent:y")) as stranger,
        connect(context, Endpoint(address, "agent:x")) as talker,
        connect(context, Endpoint(tcp, "agent:x", head.public, *foreign)) as liar,
    ):
        stranger.send(b"hello")
        talker.send_multipart([b"two", b"frames"])
        try_to_say(liar, b"lie")
        wanted = {"stranger": 1, "frames": 1}
        for _ in range(2400):
            assert router.poll(0.05) == []
            found = router.refusals()
            if found.keys() >= wanted.keys() | {"foreign key"}:
                break
        assert found.items() >= wanted.items()
        assert found["foreign key"] >= 1


def test_a_key_file_that_others_could_read_is_closed_again(tmp_path: Path) -> None:
    keys = CurveKeys.kept(tmp_path / "head")
    (tmp_path / "head").chmod(0o644)
    assert CurveKeys.kept(tmp_path / "head") == keys
    assert (tmp_path / "head").stat().st_mode & 0o777 == 0o600


def test_secrets_are_not_in_what_is_shown_of_them() -> None:
    keys = CurveKeys.fresh()
    told = Endpoint("tcp://here", "agent:x:s3cret", keys.public, keys.public, keys.secret)
    run = RunFile(1, "ipc://here", "t0ken", 1, 0.0)
    session = SessionFile(1, "ipc://here", "t1.1:s3cret", 1, 1, "/f", "{}")
    for shown in (repr(keys), repr(told), repr(run), repr(session), str([told, {"x": keys}])):
        assert "s3cret" not in shown
        assert "t0ken" not in shown
        assert keys.secret not in shown


@pytest.mark.parametrize("peers, least", [(1, 1023), (9_999, 9_999 + 64)])
def test_there_are_sockets_for_all_who_come_by_folders(peers: int, least: int) -> None:
    """Mutation: as many as a context has by itself, beyond which the rest are deaf."""
    made = context_for(peers)
    try:
        assert made.get(zmq.MAX_SOCKETS) >= least
        made.socket(zmq.PAIR).close(0)
    finally:
        made.term()
