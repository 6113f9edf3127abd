"""Rank 0's side: it admits its followers, tells them what it wants, and sees which are lost."""

from __future__ import annotations

import hmac
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import zmq

from trial_runtime.agent.nodes.meeting import ADDRESS_VARIABLE, CannotMeet, Leader, draw_token
from trial_runtime.agent.nodes.messages import SILENT_S, Job, Report, Wish, decode, encode
from trial_runtime.endpoint import MAX_MESSAGE_BYTES

Key = tuple[int, int]

_NOBLOCK = int(zmq.NOBLOCK)

#: For a follower that comes when its rank is there already.
_SECOND = "another process has its rank in this allocation"

_log = logging.getLogger("bequeath.agent")


@dataclass
class OtherNode:
    """One of the other nodes, as it was heard last."""

    identity: bytes
    report: Report
    heard_at: float
    lost: bool = False


@dataclass
class _Order:
    """The attempt that all are to run."""

    key: Key
    jobs: dict[int, Job] = field(default_factory=dict)
    stop: int = 0


class Followers:
    """The other nodes of an allocation. Owned by rank 0's loop.

    Args:
        context: ZeroMQ's; the caller owns it.
        nodes: of the allocation, this one included.
        host: the address of this node, as the others reach it.
        clock: monotonic seconds.

    Raises:
        CannotMeet: it is no address of this node.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        nodes: int,
        host: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.host = host
        self.nodes = nodes
        self._clock = clock
        self._nodes: dict[int, OtherNode] = {}
        self._order: _Order | None = None
        self.on_change: Callable[[], None] = lambda: None
        public, secret = zmq.curve_keypair()
        self.socket = context.socket(zmq.ROUTER)
        self.socket.setsockopt(zmq.LINGER, 500)
        self.socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
        self.socket.setsockopt(zmq.CURVE_SERVER, 1)
        self.socket.setsockopt(zmq.CURVE_SECRETKEY, secret)
        plain = f"[{host}]" if ":" in host else host
        if ":" in host:
            self.socket.setsockopt(zmq.IPV6, 1)
        try:
            port = self.socket.bind_to_random_port(f"tcp://{plain}")
        except zmq.ZMQError as error:
            self.socket.close()
            why = os.strerror(error.errno or 0)
            raise CannotMeet(
                f"cannot listen at {host} for the other nodes: {why}. Let {ADDRESS_VARIABLE} "
                "name an address that this node itself has"
            ) from error
        self.leader = Leader(f"tcp://{plain}:{port}", host, public.decode(), draw_token())

    # -- who is there --------------------------------------------------------------------------

    @property
    def missing(self) -> list[int]:
        """The ranks that have not come."""
        return [rank for rank in range(1, self.nodes) if rank not in self._nodes]

    @property
    def lost(self) -> str:
        """The first node that was lost, for people; empty if none is."""
        for rank, node in sorted(self._nodes.items()):
            if node.lost:
                return f"node {node.report.host} (rank {rank}) of its allocation is lost"
        return ""

    @property
    def leaving(self) -> bool:
        """Whether the place of one of them is taken back."""
        return any(node.report.leaving for node in self._nodes.values())

    def __iter__(self) -> Iterator[tuple[int, OtherNode]]:
        """The other nodes by rank."""
        return iter(sorted(self._nodes.items()))

    # -- orders --------------------------------------------------------------------------------

    def begin(self, key: Key, jobs: dict[int, Job]) -> None:
        """Let each node run its part of an attempt."""
        self._order = _Order(key, jobs)
        self._speak()

    def signal(self, key: Key, number: int) -> None:
        """Let each node send a signal to its part of an attempt: SIGTERM, and later SIGKILL."""
        order = self._order
        if order is not None and order.key == key and order.stop != signal.SIGKILL:
            order.stop = number
            self._speak()

    def close(self, why: str) -> None:
        """Send all of them away, and stop listening."""
        for node in self._nodes.values():
            self._send(node.identity, Wish(leave=why))
        self.socket.close()

    # -- their messages ------------------------------------------------------------------------

    def receive(self) -> None:
        """Take what has come; calls ``on_change`` if anything is another than before."""
        changed = False
        while True:
            try:
                frames = self.socket.recv_multipart(_NOBLOCK)
            except zmq.Again:
                break
            report = decode(frames[-1], Report) if len(frames) == 2 else None
            token = self.leader.token.encode()
            if report is None or not hmac.compare_digest(report.token.encode(), token):
                continue  # a stranger, who knows our port
            changed = self._take(frames[0], report) or changed
        if changed:
            self.on_change()

    def _take(self, identity: bytes, report: Report) -> bool:
        known = self._nodes.get(report.rank)
        strange = not 0 < report.rank < self.nodes
        if strange or (known is not None and known.report.start != report.start):
            self._send(identity, Wish(leave=_SECOND))
            return False
        if known is None:
            _log.info("rank %d is there: %s", report.rank, report.host)
            node = self._nodes[report.rank] = OtherNode(identity, report, self._clock())
            self._send(identity, self._wish(report.rank, node))
            return True
        before, known.report, known.heard_at = known.report, report, self._clock()
        return before != report

    def tick(self) -> None:
        """Repeat what is wanted, and look who is silent; called each second."""
        now, lost = self._clock(), False
        for rank, node in self._nodes.items():
            if not node.lost and now - node.heard_at > SILENT_S:
                _log.error("rank %d on %s is silent: it is lost", rank, node.report.host)
                node.lost = lost = True
        self._speak()
        if lost:
            self.on_change()

    def _speak(self) -> None:
        for rank, node in self._nodes.items():
            self._send(node.identity, self._wish(rank, node))

    def _wish(self, rank: int, node: OtherNode) -> Wish:
        order = self._order
        if order is None:
            return Wish()
        known = node.report.key == order.key
        return Wish(order.key, None if known else order.jobs.get(rank), order.stop)

    def _send(self, identity: bytes, wish: Wish) -> None:
        try:
            self.socket.send_multipart((identity, encode(wish)), _NOBLOCK)
        except zmq.ZMQError:
            pass  # it is repeated
