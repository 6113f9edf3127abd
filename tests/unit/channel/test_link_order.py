"""What a peer is sent reaches it in order and once, however its queue fills and drains."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.channel import router
from dispatcher.channel.router import RouterLink

BACKLOG = 4


class Socket:
    """A peer's queue as ZeroMQ has it: full, or not there, for as long as it pleases."""

    def __init__(self) -> None:
        self.room = 0
        self.heard: dict[bytes, list[int]] = {}

    def send(self, routing_id: bytes, payload: bytes) -> bool:
        """See ``Router.send``."""
        if not self.room:
            return False
        self.room -= 1
        self.heard.setdefault(routing_id, []).append(int(payload))
        return True

    def rename(self, link: RouterLink, routing_id: bytes) -> None:
        """See ``Router.rename``."""
        link.routing_id = routing_id


SOME = st.integers(1, 2 * BACKLOG)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), SOME),
        st.tuples(st.just("makes room"), SOME),  # the peer reads; nobody says so
        st.tuples(st.just("speaks"), st.just(1)),
        st.tuples(st.just("is succeeded"), st.just(1)),
    ),
    max_size=40,
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(STEPS)
def test_each_peer_gets_all_that_was_taken_for_it_in_order(steps: list[tuple[str, int]]) -> None:
    socket = Socket()
    link = RouterLink(socket, "tuner", b"0")  # type: ignore[arg-type]
    number, taken = 0, []  # for the present peer
    with patch.object(router, "MAX_BACKLOG", BACKLOG):
        for what, count in steps:
            if what == "send":
                for _ in range(count):
                    number += 1
                    if link.send(b"%d" % number):
                        taken.append(number)
            elif what == "makes room":
                socket.room += count
            elif what == "speaks":
                link.flush()
            else:
                link.renew(f"{number}'")
                taken = []
            there = socket.heard.get(link.routing_id, [])
            assert there == taken[: len(there)], "in the order in which it was sent"
            waiting = len(taken) - len(there)
            assert waiting <= BACKLOG
            assert not (what == "speaks" and waiting and socket.room), "it had room, and waits"
    socket.room = number
    link.flush()
    assert socket.heard.get(link.routing_id, []) == taken, "nothing that was taken is lost"
