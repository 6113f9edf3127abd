"""One life of an agent: the product's outbox, spool and protocol, and attempts by dice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import zmq
from msgspec.structs import replace

from dispatcher.core.model import EndReason
from tests.support.weight_files import PLAIN, Saver
from trial_runtime import facts, wire
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.link.head_link import HeadLink
from trial_runtime.agent.link.outbox import Outbox
from trial_runtime.fact_wire import decode_fact

if TYPE_CHECKING:
    from tests.support.agents import Host
    from tests.support.world import World

HEARTBEAT_S = 2.0
GRACE_S = 60.0

#: Silence after which heads of these worlds have given a worker up.
LONG_S = 10.0

_BAD_ENDS = (
    EndReason.FAILED,
    EndReason.SIGNALLED,
    EndReason.OUT_OF_MEMORY,
    EndReason.TIMED_OUT,
    EndReason.PREEMPTED,
)


class _Socket:
    """What a DEALER looks like to an agent."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._sender = host.lives
        self.inbox: list[bytes] = []

    def setsockopt(self, _option: int, _value: object) -> None:
        """Nothing to set."""

    def connect(self, _address: str) -> None:
        """It is."""

    def recv(self, _flags: int) -> bytes:
        if not self.inbox:
            raise zmq.Again
        return self.inbox.pop(0)

    def send(self, frame: bytes, _flags: int) -> None:
        self._host.up.send(frame, self._sender)


class _Context:
    """What makes such a socket."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def socket(self, _kind: int) -> _Socket:
        return _Socket(self._host)


class _Link(HeadLink):
    """The agent's side of the protocol, in a process of its own as far as anybody can tell."""

    pid = 0

    def _send(self, messages: list[wire.FromAgent]) -> bool:
        return super()._send(
            [replace(m, pid=self.pid) if isinstance(m, wire.AgentHello) else m for m in messages]
        )


class WitnessedOutbox(Outbox):
    """Tells the world which words its agent was allowed to forget."""

    def __init__(self, world: World, path: str) -> None:
        self._world = world
        super().__init__(path)

    def acknowledge(self, number: int) -> None:
        """See the outbox."""
        for place, raw in enumerate(self._messages):
            if self.first + place > number:
                break
            self._world.safe_words.append(decode_fact(raw))
        super().acknowledge(number)


#: Seconds after which a trial says again what it offered to a shared store.
OFFER_AGAIN_S = 3.0


@dataclass
class _Process:
    start: facts.StartAttempt
    alive: bool = True
    seq: int = 0
    written: str = ""  # digest of the weights that it saved last
    announced: str = ""  # digest of the weights that the head was told of
    saver: Saver | None = None  # a save that is under way
    offered: facts.VersionOffered | None = None  # to a shared store, and not answered
    offers: int = 0  # that it still wants to make


class SimAgent:
    """One life of an agent."""

    def __init__(self, host: Host, config: AgentConfig) -> None:
        self._host = host
        self._world = host.world
        host.lives += 1
        self.number = host.lives
        self.ticket = config.ticket
        self.alive = True
        self._going = False  # its scheduler has asked it to
        self.processes: dict[tuple[int, int], _Process] = {}
        self._over: set[tuple[int, int]] = set()
        self._frozen_until = 0.0
        self._flushing = False
        self.outbox = WitnessedOutbox(self._world, config.spool_path)
        self.outbox.end_orphans()
        self.link = _Link(_Context(host), config, self.outbox, self._holds, offer=self.offer)  # type: ignore[arg-type]
        self.link.pid = self.number
        self.born = self._heard_at = self._world.now
        self._in_trouble = bool(host.trouble)  # looked for once, and until it is mended
        if self._in_trouble:
            self.link._troubles["root"] = host.trouble
        self._soon(0.2, self._tick)

    def offer(self, _newest: bool) -> wire.OfferMessage | None:
        """What its host has."""
        offer = self._host.offer
        if offer is None:
            return None
        devices = tuple(
            wire.DeviceMessage(d.id, d.index, d.name, d.memory_bytes, d.parent, d.trouble)
            for d in offer.devices
        )
        return wire.OfferMessage(
            devices, offer.cpus, offer.memory_bytes, offer.custom, offer.cached
        )

    def _holds(self) -> list[tuple[int, int]]:
        return list(self.processes)

    # -- time ------------------------------------------------------------------------------

    def _later(self, delay: float, do: Callable[[], None]) -> None:
        def then() -> None:
            if not self.alive:
                return
            if self._world.now < self._frozen_until:
                self._later(self._frozen_until - self._world.now, do)
            else:
                do()

        self._world.later(delay, then)

    def _soon(self, scale: float, do: Callable[[], None]) -> None:
        self._later(self._world.rng.expovariate(1 / scale), do)

    def _tick(self) -> None:
        silence = self._world.now - self._heard_at
        if silence > GRACE_S:
            self._world.note(f"the agent of {self._host.name} leaves: no head")
            for process in list(self.processes.values()):
                self._end(process, EndReason.SHUTDOWN)
            self.outbox.spool()
            self.die()
            return
        if silence > 3.0:
            self.outbox.spool()
        if self._in_trouble and not self._host.trouble:
            self._in_trouble = False
            self.link.tell_trouble("")
        self.link._offered = None  # said again each time: its pause is one of the real clock
        self.link.heartbeat(len(self.processes), {}, leaving=self._going)
        self._later(HEARTBEAT_S, self._tick)

    def asked_to_go(self) -> None:
        """As the product at SIGTERM: the head is told first, what runs is stopped, and it leaves
        when all is handed in."""

        def go() -> None:
            self._going = True
            self.link.heartbeat(len(self.processes), {}, leaving=True)
            for process in list(self.processes.values()):
                self._soon(0.3, partial(self._end, process, EndReason.PREEMPTED))
            self._leave()

        self._later(0.0, go)

    def _leave(self) -> None:
        if self.processes or self.outbox.first <= self.outbox.newest:
            self._later(0.2, self._leave)
        else:
            self._world.note(f"the agent of {self._host.name} has left")
            self.die()

    def freeze(self, seconds: float) -> None:
        self._frozen_until = self._world.now + seconds

    def die(self) -> None:
        self.alive = False
        self.processes.clear()
        if self._host.agent is self:
            self._host.agent = None

    # -- words -----------------------------------------------------------------------------

    def hear(self, frame: bytes) -> None:
        if self._world.now < self._frozen_until:
            self._later(self._frozen_until - self._world.now, lambda: self.hear(frame))
            return
        if wire.from_head(frame).epoch >= self.link.epoch:
            self._heard_at = self._world.now
        self.link.socket.inbox.append(frame)  # type: ignore[attr-defined]
        for order in self.link.receive():
            if isinstance(order, facts.StartAttempt):
                self._start(order)
            elif isinstance(order, facts.StopAttempt):
                self._stop(order)
            elif isinstance(order, wire.VersionAnswered):
                self._answered(order)
            elif isinstance(order, wire.Shutdown):
                self._dismissed()
        self._flush()

    def _dismissed(self) -> None:
        """Leave, as the head has ordered: it believes another one."""
        self._world.note(f"the agent of {self._host.name} is dismissed")
        self._world.harm(self._host.name)
        for process in list(self.processes.values()):
            self._end(process, EndReason.SHUTDOWN)
        self.die()

    def _say(self, word: Any) -> None:
        self.outbox.add(word, urgent=True)
        if not self._flushing:
            self._flushing = True
            self._soon(0.01, self._flush)

    def _flush(self) -> None:
        self._flushing = False
        self.link.flush()

    # -- attempts --------------------------------------------------------------------------

    def _start(self, order: facts.StartAttempt) -> None:
        key = (order.trial, order.attempt)
        if key in self.processes or key in self._over or self._going:
            return
        for process in list(self.processes.values()):
            if process.start.trial == order.trial:
                self._end(process, EndReason.LOST)  # superseded
        self._world.began(self._host, self, order)
        process = self.processes[key] = _Process(order)
        weights = self._world.weights
        trouble = ""
        if weights is not None and order.save_path is not None:
            trouble = weights.make_room(self._host, order)
        if trouble:
            self._world.faults.append(f"no room for {order.trial}.{order.attempt}: {trouble}")
        self._script(process)

    # -- shared stores ---------------------------------------------------------------------

    def _offer(self, process: _Process, store: str, base: int) -> None:
        """Write what would be the next version, and ask whether it is."""
        start = process.start
        process.seq += 1
        name = f"{start.trial}.{start.attempt}-{process.seq:x}"
        process.offered = facts.VersionOffered(
            start.trial, start.attempt, process.seq, store, base, f"{store}/{name}", name, 10
        )
        self._say_offer(process, process.offered)

    def _say_offer(self, process: _Process, offered: facts.VersionOffered) -> None:
        if not process.alive or process.offered is not offered:
            return
        self._say(offered)
        self._later(OFFER_AGAIN_S, lambda: self._say_offer(process, offered))

    def _answered(self, order: wire.VersionAnswered) -> None:
        """Merge and offer again, if another one came first; then, perhaps, the next one."""
        process = self.processes.get((order.trial, order.attempt))
        told = order.answer
        if process is None or process.offered is None or process.offered.digest != told.digest:
            return
        store, process.offered = process.offered.store, None
        if told.refusal:
            self._world.faults.append(f"an offer was refused: {told.refusal}")
            return
        assert told.newest is not None
        number = told.newest.number
        if told.accepted:
            process.offers -= 1
            if process.offers <= 0:
                return
        self._soon(0.2, lambda: process.alive and self._offer(process, store, number))

    def _stop(self, order: facts.StopAttempt) -> None:
        process = self.processes.get((order.trial, order.attempt))
        if process is not None:
            self._soon(0.3, lambda: self._end(process, order.reason))

    def _end(self, process: _Process, reason: EndReason, files: str = "") -> None:
        if not process.alive:
            return
        process.alive = False
        start = process.start
        path = start.save_path
        if self._world.weights is not None:
            files = self._left(process, reason)
        elif process.announced and path is not None and reason is not EndReason.LOST:
            there = self._world.files.get(path, process.announced)
            if there != process.announced:  # saved again, and ended before it said so
                process.seq += 1
                self._say(
                    facts.WeightsPublished(
                        start.trial,
                        start.attempt,
                        process.seq,
                        facts.Weights(there, "bequeath", 10),
                    )
                )
        self.processes.pop((start.trial, start.attempt), None)
        self._over.add((start.trial, start.attempt))
        kind = self._world.weights.kind_of(files) if files and self._world.weights else "files"
        weights = facts.Weights(files, kind, 10) if files else None
        if files and path is not None:
            self._world.files[path] = files
        self._say(facts.AttemptEnded(start.trial, start.attempt, reason, weights=weights))

    def _left(self, process: _Process, reason: EndReason) -> str:
        """What the product finds where an attempt has saved: told before its end if the attempt
        itself has announced something, else with it."""
        start, weights = process.start, self._world.weights
        counts = reason is EndReason.FINISHED or process.announced
        if weights is None or start.save_path is None or not counts or reason is EndReason.LOST:
            return ""
        name = weights.left(self._host, start, process.announced)
        if not name or not process.announced:
            return name
        process.written = name
        self._announce(process)
        return ""

    def _save(self, process: _Process, number: int, steps: list[Callable[[], None]]) -> None:
        """One step of a save as the product does it; told once it has returned, or a moment
        after."""
        weights = self._world.weights
        assert weights is not None
        if process.saver is None:
            process.saver = weights.save(self._host, process.start, number)
        saver = process.saver
        if self._is_befallen() or not weights.go_on(saver):
            steps.insert(0, lambda: self._save(process, number, steps))
            return
        process.saver = None
        if saver.error is not None:
            self._world.note(f"{saver.mark.text} cannot save: {saver.error}")
            self._end(process, EndReason.FAILED)
            return
        process.written = self._world.files[saver.path_told] = saver.mark.text
        if not self._world.odds.saves_again:
            self._announce(process)

    def _write_plain(self, process: _Process, name: str, steps: list[Callable[[], None]]) -> None:
        """One of the files of weights that are written by other means."""
        assert self._world.weights is not None
        if self._is_befallen():
            steps.insert(0, lambda: self._write_plain(process, name, steps))
        else:
            self._world.weights.write_plain(self._host, process.start, name)

    def _is_befallen(self) -> bool:
        """Whether something happens while weights are being saved; mostly the head gives the
        attempt up, and it lives on."""
        rng, host, weights = self._world.rng, self._host, self._world.weights
        assert weights is not None
        if not weights.accidents or rng.random() > 0.15:
            return False
        weights.accidents -= 1
        what = rng.random()
        if what < 0.2:
            host.die()
        elif what < 0.4:
            host.freeze(rng.uniform(LONG_S, 2 * LONG_S))
        else:
            host.cut_off(rng.uniform(LONG_S, 3 * LONG_S))
        return True

    def _load(self, process: _Process) -> None:
        """The parent's weights; who cannot have them fails."""
        assert self._world.weights is not None
        if self._world.weights.load(self._host, process.start):
            self._end(process, EndReason.FAILED)

    def _write(self, process: _Process, digest: str) -> None:
        """Complete weights replace what was at the save path."""
        assert process.start.save_path is not None
        process.written = digest
        self._world.files[process.start.save_path] = digest

    def _announce(self, process: _Process) -> None:
        """Say what was saved last, if that was not said."""
        if process.written == process.announced:
            return
        process.announced = process.written
        process.seq += 1
        start = process.start
        self._say(
            facts.WeightsPublished(
                start.trial,
                start.attempt,
                process.seq,
                facts.Weights(process.announced, "bequeath", 10),
            )
        )

    def _and_announce(self, process: _Process, do: Callable[[], None]) -> None:
        do()
        self._announce(process)

    def _hang(self, steps: list[Callable[[], None]]) -> None:
        """Do nothing, and then again."""
        steps.insert(0, lambda: self._hang(steps))

    def _script(self, process: _Process) -> None:
        """What the process will do, step by step, unless it is ended before."""
        rng, start = self._world.rng, process.start
        trial, attempt = start.trial, start.attempt
        odds = self._world.odds
        bad = rng.random() < odds.trial_fails
        if odds.sick and self._host.is_sick:
            bad = True
        digest = f"{trial}.{attempt}"
        weights = self._world.weights

        def seq() -> int:
            process.seq += 1
            return process.seq

        steps: list[Callable[[], None]] = []
        if bad and rng.random() < 0.15:
            steps.append(lambda: self._end(process, EndReason.START_FAILED))
        else:
            steps.append(lambda: self._say(facts.AttemptStarted(trial, attempt, 1)))
        of_trial = (start.restore_path or "/").startswith(("t/", "hand/"))
        if weights is not None and start.restore_digest is not None and of_trial:
            steps.append(lambda: self._load(process))
        if odds.stores and rng.random() < odds.stores:
            process.offers = rng.choice((1, 1, 3))
            store = rng.choice(("omega", "psi"))
            base = max((each.number for each in start.versions if each.store == store), default=0)
            steps.append(lambda: self._offer(process, store, base))
            steps.extend([lambda: None] * rng.randrange(6))
        for _ in range(rng.randrange(3) + (2 if odds.early_stops else 0)):
            steps.append(
                lambda: self._say(facts.MetricReported(trial, attempt, (n := seq()), f"0.{n}"))
            )
        writes = start.save_path is not None and rng.random() < 0.9
        publishes = writes and rng.random() < 0.6
        if weights is not None:  # attempts of one trial run the same code
            publishes = writes and not weights.is_plain(trial)
        says: list[Callable[[], None]] = []

        if publishes and weights is not None:
            again = 2 if rng.random() < odds.saves_again else 1
            for number in range(1, again + 1):
                says.append(partial(self._save, process, number, steps))
        elif writes and weights is not None:
            for name in PLAIN:
                says.append(partial(self._write_plain, process, name, steps))
        elif publishes:
            says.append(lambda: self._write(process, digest))
            if odds.saves_again and rng.random() < odds.saves_again:
                says.append(lambda: self._write(process, f"{digest}+"))
        if rng.random() < 0.9:
            says.append(lambda: self._say(facts.FinalReported(trial, attempt, seq(), digest)))
            if rng.random() < 0.1:
                says.append(lambda: self._say(facts.FinalReported(trial, attempt, seq(), "9")))
        rng.shuffle(says)
        if bad:
            says = says[: rng.randint(0, len(says))]
        if publishes and odds.saves_again:  # a moment passes between a save and the word of it
            says = [part for one in says for part in (one, lambda: self._announce(process))]
        elif publishes:
            says = [partial(self._and_announce, process, one) for one in says]
        steps.extend(says)
        if odds.hangs and rng.random() < odds.hangs:
            steps.append(lambda: self._hang(steps))
        files = digest if writes and not publishes and not bad and weights is None else ""
        reason = rng.choice(_BAD_ENDS) if bad else EndReason.FINISHED
        steps.append(lambda: self._end(process, reason, files))

        def step() -> None:
            if process.alive and steps:
                steps.pop(0)()
                self._soon(odds.save_pause_s if process.saver is not None else 0.3, step)

        self._soon(0.1, step)
