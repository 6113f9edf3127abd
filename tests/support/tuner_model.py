"""A tuner host by dice: an author's code as a generator a request, deliveries in line, gates
opened on the spot, and crashes after which a new process is restored from what the product
laid beside its launch: its own ``state()`` and the calls since, or all calls.

What it was told is its state: a list of calls, which the checker reads."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec

from dispatcher.channel import PeerMessage
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.model import EndReason, Verdict
from dispatcher.core.waits import resolve
from tests.support.batches import decode_batch, encode_batch
from tests.support.checker import Call

if TYPE_CHECKING:
    from tests.support.world import World

#: What an author's generator yields: ("think", s), ("stand", s), ("wait", parents, mode),
#: ("version", store, number, parents).
Script = Generator[tuple[Any, ...], str, e.Event]

#: What comes to the tuner one after another.
Work = a.Deliver | a.TellImport | a.TellSearchSpace | a.Assess

#: Seconds that something takes which takes long: some of it longer than any stall time-out.
LONG_S = 60.0

#: The shared stores that its trials write to.
STORES = ("omega", "psi")


class _Process:
    """One life of the host."""

    def __init__(self, calls: list[Call], life: int) -> None:
        self.calls = calls
        self.life = life
        self.verdicts: dict[int, Verdict] = {}
        self.scripts: dict[int, Script] = {}
        self.waits: dict[int, tuple[int, tuple[int, ...], str]] = {}
        self.awaited: dict[int, tuple[str, int]] = {}  # version, by the waiting request
        self.newest: dict[str, int] = {}  # version of each shared store
        self.held: dict[str, int] = {}
        self.judged: set[int] = set()  # trials that it has stopped early
        self.tickets: dict[int, int] = {}
        self.line: deque[Work] = deque()
        self.busy = False
        self.alive = True
        self.gone_at = float("inf")  # what it said before may still be on its way then
        self.last_arrival = 0.0  # words upwards, and orders downwards, keep their order
        self.last_order = 0.0
        self.proposed: list[int] = []
        self.at: dict[int, float] = {}  # since when a request's thread is where it is
        self.standing: set[int] = set()  # requests whose threads wait for what is not ours
        self.cancelled: set[int] = set()
        self.stuck: int | None = None  # the delivery that stands still
        self.busy_since = 0.0
        self.ready_at = float("inf")


@dataclass
class Whereabouts:
    """What an author's threads stand in: requests by number, and for how many seconds."""

    ready_s: float
    newest_s: dict[int, float] = field(default_factory=dict)  # of all: since it did anything
    thinking: dict[int, float] = field(default_factory=dict)
    standing: dict[int, float] = field(default_factory=dict)  # in waits that are not ours
    waiting: dict[int, float] = field(default_factory=dict)  # in wait_for, and the like
    stuck: int | None = None  # the trial whose delivery stands still
    stuck_s: float = 0.0
    delivers_s: float | None = None  # a delivery computes for so long
    goes_on: bool = False  # a request that was cancelled computes
    in_line: set[int] = field(default_factory=set)  # trials whose results wait for the tuner


class TunerModel:
    """Implements :class:`dispatcher.ports.TunerPort`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._process: _Process | None = None
        self._lives = 0
        self._lost = True  # what it says is heard no more, as the driver has it
        self.opened: list[int] = []

    @property
    def calls(self) -> list[Call]:
        """What the newest process was told, what it was restored with included."""
        return self._process.calls if self._process is not None else []

    # -- the port --------------------------------------------------------------------------

    def perform(self, action: a.TunerAction) -> None:
        self._world.step(f"perform {type(action).__name__}")
        if isinstance(action, a.LaunchTuner):
            self._launch()
            return
        process = self._process
        if process is None or not process.alive:
            return
        if isinstance(action, a.CancelRequest):
            process.cancelled.add(action.trial)
            process.at[action.trial] = self._world.now
        elif isinstance(action, a.OpenRequest):
            process.cancelled.discard(action.trial)
            self._world.standstill.moved()
        delay = self._world.rng.expovariate(1 / 0.01)
        process.last_order = max(process.last_order, self._world.now + delay)

        def arrive() -> None:
            if process.alive:
                self._hear(process, action)

        self._world.at(process.last_order, arrive)

    def flush(self) -> None:
        """Everything went out at once."""
        self._world.step("flush to the tuner")

    def receive(self, payload: bytes) -> list[e.Event]:
        life, batch = payload.split(b"\0", 1)
        process = self._process
        if self._lost or process is None or process.life != int(life):
            return []
        return decode_batch(batch)

    def check(self) -> list[e.Event]:
        """The driver sees that the process is gone some time after it is."""
        process = self._process
        if self._lost or process is None or process.alive or self._world.now < process.gone_at:
            return []
        self._lost = True
        return [e.TunerHostLost("segmentation fault")]

    def close(self, deadline_s: float) -> None:
        """Never closed."""

    def whereabouts(self) -> Whereabouts | None:
        """What the author's threads stand in; None while no process is there and ready."""
        process, now = self._process, self._world.now
        if self._lost or process is None or not process.alive or process.ready_at > now:
            return None
        there = Whereabouts(ready_s=now - process.ready_at)
        there.newest_s = {trial: now - since for trial, since in process.at.items()}
        for trial in process.scripts:
            if trial in process.cancelled:  # its thread goes on all the same, until it answers
                there.goes_on |= trial not in process.waits and trial not in process.standing
                continue
            place = there.thinking
            if trial in process.standing:
                place = there.standing
            elif trial in process.waits:
                place = there.waiting
            place[trial] = now - process.at.get(trial, now)
        if process.stuck is not None:
            there.stuck, there.stuck_s = process.stuck, now - process.busy_since
        elif process.busy:
            there.delivers_s = now - process.busy_since
        there.in_line = {each.trial for each in process.line if isinstance(each, a.Deliver)}
        return there

    # -- fate ------------------------------------------------------------------------------

    def new_head(self) -> None:
        """The host ends with its head."""
        self._lost = True
        if self._process is not None:
            self._process.alive = False

    def crash(self) -> list[PeerMessage] | None:
        """A segmentation fault."""
        process = self._process
        if process is not None and process.alive:
            self._world.note("the tuner host crashes")
            process.alive = False
            process.gone_at = self._world.now + self._world.rng.uniform(0.0, 0.1)
        return None

    def _launch(self) -> None:
        if self._process is not None:
            self._process.alive = False
        past = msgspec.msgpack.decode(self._world.restore_file.read_bytes())
        calls: list[Call] = []
        newest: dict[str, int] = {}
        if past["state"] is not None:
            calls.extend(tuple(call) for call in json.loads(past["state"]))
        for call in past["calls"]:
            match call:
                case ["result", number, _, value]:
                    calls.append(("result", number, value))
                case ["generate", number, _]:
                    calls.append(("generate", number, None))
                case ["end", number, success, _]:
                    calls.append(("end", number, success))
                case ["import", number, data]:
                    calls.append(("import", number, data))
                case ["version", _, store, number]:
                    before = 0 if past["state"] is None else number - 1
                    assert number == newest.get(store, before) + 1, f"{call} after {newest}"
                    newest[store] = number
                case _:  # a request that ended without a trial, or was refused a wait
                    assert call[0] in ("gate", "refused"), call
        self._lives += 1
        self._lost = False
        process = self._process = _Process(calls, self._lives)
        process.newest = newest
        process.proposed = [number for what, number, _ in calls if what == "generate"]

        def ready() -> None:
            process.ready_at = self._world.now
            self._say(process, e.TunerHostReady())

        self._later(process, 0.3, ready)

    # -- one process -----------------------------------------------------------------------

    def _later(self, process: _Process, scale: float, do: Callable[[], None]) -> None:
        def then() -> None:
            if process.alive:
                do()

        scale *= self._world.odds.tuner_slowness
        self._world.later(self._world.rng.expovariate(1 / scale), then)

    def _say(self, process: _Process, *events: Any) -> None:
        payload = b"%d\0%s" % (process.life, encode_batch(list(events)))
        delay = self._world.rng.expovariate(1 / 0.01)
        process.last_arrival = max(process.last_arrival, self._world.now + delay)

        def arrive() -> list[PeerMessage] | None:
            heard = process.alive or self._world.now < process.gone_at
            return [PeerMessage("tuner", b"tuner", payload)] if heard else None

        self._world.at(process.last_arrival, arrive)

    def _hear(self, process: _Process, action: a.TunerAction) -> None:
        match action:
            case a.OpenRequest(trial=trial):
                self.opened.append(trial)
                process.scripts[trial] = self._author(process, trial)
                self._go_on(process, trial, "begin")
            case a.CancelRequest(trial=trial):
                process.awaited.pop(trial, None)
                if process.waits.pop(trial, None) is not None:
                    process.scripts.pop(trial, None)  # else its thread goes on, and may answer
            case a.AnswerWait(trial=trial, ticket=ticket):
                wait = process.waits.get(trial)
                if wait is not None and wait[0] == ticket:
                    del process.waits[trial]
                    of_store = process.awaited.pop(trial, None)
                    if action.kind == "granted" and of_store is None:
                        self._granted(process, trial, wait[1], wait[2])
                    self._go_on(process, trial, action.kind)
            case a.Deliver() | a.TellImport() | a.TellSearchSpace():
                process.line.append(action)
                self._serve(process)
            case a.Assess() if self._world.odds.advisor:
                process.line.append(action)
                self._serve(process)
            case a.Assess():
                self._later(process, 0.05, lambda: self._judge(process, action))
            case a.TellVersion(store=store, number=number, trial=by):
                process.newest[store] = number
                self._wake_for_version(process, store, number, by)
            case a.AskStacks(trials=trials):
                self._say(process, e.StacksReported({int(t): "in wait_for" for t in trials}))
            case a.OpenGate(trial=trial, verdict=verdict):
                process.verdicts[trial] = verdict
                self._wake(process, trial)
            case _:
                pass

    def _serve(self, process: _Process) -> None:
        if process.busy or not process.line:
            return
        process.busy, process.busy_since = True, self._world.now
        work = process.line.popleft()
        rng, odds = self._world.rng, self._world.odds
        if not isinstance(work, a.Deliver):
            self._later(process, 0.02, lambda: self._told(process, work))
            return

        def error() -> str:
            return "ValueError: no" if rng.random() < odds.tuner_raises else ""

        def result() -> None:
            process.stuck, process.busy_since = None, self._world.now
            process.at[work.trial] = self._world.now
            if work.value is not None and not work.result_delivered:
                process.calls.append(("result", work.trial, work.value))
                self._say(process, e.ResultDelivered(work.trial, error()))
            self._later(process, 0.02, end)

        def end() -> None:
            self._world.standstill.moved()
            process.calls.append(("end", work.trial, work.success))
            self._say(process, e.EndDelivered(work.trial, error()))
            process.verdicts[work.trial] = work.verdict
            process.busy = False
            self._wake(process, work.trial)
            self._keep_state(process)
            self._serve(process)

        if rng.random() < 0.02:  # it polls for something that never comes, or that does
            process.stuck = work.trial
            self._say(process, e.DeliveryStandsStill(work.trial))
            self._later(process, 3.0, result)
        elif odds.locks and rng.random() < odds.locks:  # of a lock that is not given back
            process.stuck = work.trial
            self._say(process, e.DeliveryStandsStill(work.trial))
            if rng.random() < 0.5 or self._world.is_patient:
                self._later(process, LONG_S, result)
        elif odds.thinks and rng.random() < odds.thinks:  # it computes, and says nothing
            self._later(process, LONG_S, result)
        else:
            self._later(process, 0.02, result)

    def _told(self, process: _Process, work: a.TellImport | a.TellSearchSpace | a.Assess) -> None:
        """What comes between results."""
        if isinstance(work, a.TellImport):
            raises = self._world.rng.random() < self._world.odds.tuner_raises
            process.calls.append(("import", work.number, work.data))
            self._say(process, e.ImportDelivered(work.number, "ValueError: no" if raises else ""))
        elif isinstance(work, a.Assess):
            process.calls.append(("intermediate", work.trial, work.value))
            self._judge(process, work)
        else:
            process.calls.append(("space", 0, work.search_space))
        process.busy = False
        self._serve(process)

    def _judge(self, process: _Process, shown: a.Assess) -> None:
        """An assessor's word, or an advisor's: once for each trial."""
        if shown.trial in process.judged:
            return
        if self._world.rng.random() < self._world.odds.early_stops:
            process.judged.add(shown.trial)
            self._say(process, e.TrialStopRequested(shown.trial, EndReason.STOPPED_EARLY))

    def _keep_state(self, process: _Process) -> None:
        """``state()`` at rest: nothing is being delivered, every request's thread waits."""
        if not self._world.odds.keeps_state or self._world.rng.random() < 0.6:
            return
        if all(trial in process.waits for trial in process.scripts):
            self._say(process, e.TunerStateTaken(json.dumps(process.calls)))

    def _granted(self, process: _Process, trial: int, parents: tuple[int, ...], mode: str) -> None:
        process.calls.append(("granted", trial, [mode, *parents]))

    def _wake(self, process: _Process, opened: int) -> None:
        for trial, (_, parents, mode) in list(process.waits.items()):
            if mode == "version":
                continue  # the head's to answer
            answer = resolve(parents, mode, process.verdicts.get)  # type: ignore[arg-type]
            if answer.kind != "pending":
                del process.waits[trial]
                if answer.kind == "granted":
                    self._granted(process, trial, parents, mode)
                self._go_on(process, trial, answer.kind)
            elif opened in parents:  # the rest may have ended before this process was there
                ticket = process.tickets[trial] = process.tickets[trial] + 1
                process.waits[trial] = (ticket, parents, mode)
                self._say(process, e.WaitStarted(trial, ticket, parents, mode))  # type: ignore[arg-type]

    def _wake_for_version(self, process: _Process, store: str, number: int, by: int | None) -> None:
        for trial, (awaited, least) in list(process.awaited.items()):
            _, parents, _ = process.waits[trial]
            if awaited == store and (number >= least if least else by in parents):
                del process.waits[trial], process.awaited[trial]
                self._go_on(process, trial, "granted")

    def _go_on(self, process: _Process, trial: int, answer: str) -> None:
        script = process.scripts.get(trial)
        if script is None:
            return
        process.at[trial] = self._world.now
        self._world.standstill.moved()
        process.standing.discard(trial)
        try:
            step = next(script) if answer == "begin" else script.send(answer)
        except StopIteration as stop:
            process.scripts.pop(trial, None)
            if isinstance(stop.value, e.Proposed):
                process.proposed.append(trial)
                process.calls.append(("generate", trial, None))
            value = stop.value
            if isinstance(value, e.Proposed):
                value = self._finished(value)
            self._say(process, value)
            return
        if step[0] == "version":
            self._wait_for_version(process, trial, *step[1:])
            return
        if step[0] == "hold":
            process.held[step[1]] = step[2]
            self._say(process, e.VersionsHeld(step[1], (step[2],)))
            self._go_on(process, trial, "on")
            return
        if step[0] == "wait":
            self._wait(process, trial, step[1], step[2])
            return
        if step[0] == "stand":
            process.standing.add(trial)
            self._say(process, e.ForeignWaitSeen(trial))  # type: ignore[arg-type]
            if step[1] == float("inf"):
                return

        def on() -> None:
            # Who answers at once is not seen any more; who goes on for long always is.
            if step[0] == "stand" and (self._world.odds.stands or self._world.rng.random() < 0.5):
                self._say(process, e.ForeignWaitOver(trial))  # type: ignore[arg-type]
            self._go_on(process, trial, "on")

        self._later(process, step[1], on)

    def _finished(self, proposed: e.Proposed) -> e.Proposed:
        """With what the author says of each trial alike."""
        bulk = self._world.odds.bulk_bytes
        text = json.dumps("x" * bulk) if bulk else proposed.parameters
        needs = self._world.case.needs_of(proposed.trial)
        return replace(proposed, needs=needs, parameters=text)

    def _wait_for_version(
        self, process: _Process, trial: int, store: str, number: int, parents: tuple[int, ...]
    ) -> None:
        if number and process.newest.get(store, 0) >= number:
            self._go_on(process, trial, "granted")
            return
        self._enter(process, trial, parents, "version")
        process.awaited[trial] = (store, number)
        ticket = process.tickets[trial]
        self._say(process, e.WaitStarted(trial, ticket, parents, "version", store, number))  # type: ignore[arg-type]

    def _enter(self, process: _Process, trial: int, parents: tuple[int, ...], mode: str) -> None:
        ticket = process.tickets[trial] = process.tickets.get(trial, 0) + 1
        process.waits[trial] = (ticket, parents, mode)
        if self._world.rng.random() < 0.1:
            self._later(process, 2.0, lambda: self._give_up(process, trial, ticket))

    def _wait(self, process: _Process, trial: int, parents: tuple[int, ...], mode: str) -> None:
        known = resolve(parents, mode, process.verdicts.get)  # type: ignore[arg-type]
        if known.kind != "pending" and trial not in parents:
            ticket = process.tickets[trial] = process.tickets.get(trial, 0) + 1
            self._say(process, e.WaitStarted(trial, ticket, parents, mode, answered=True))  # type: ignore[arg-type]
            self._go_on(process, trial, known.kind)
            return
        self._enter(process, trial, parents, mode)
        ticket = process.tickets[trial]
        self._say(process, e.WaitStarted(trial, ticket, parents, mode))  # type: ignore[arg-type]

    def _give_up(self, process: _Process, trial: int, ticket: int) -> None:
        wait = process.waits.get(trial)
        if wait is not None and wait[0] == ticket:
            del process.waits[trial]
            process.awaited.pop(trial, None)
            self._say(process, e.WaitGivenUp(trial, ticket))  # type: ignore[arg-type]
            self._go_on(process, trial, "timeout")

    # -- the author ------------------------------------------------------------------------

    def _author(self, process: _Process, trial: Any) -> Script:
        proposal = yield from self._answer(process, trial)
        stores = self._world.odds.stores
        if not (stores and isinstance(proposal, e.Proposed)):
            return proposal
        return (yield from self._with_versions(process, trial, proposal))

    def _with_versions(self, process: _Process, trial: Any, proposal: e.Proposed) -> Script:
        """A proposal that reads from a shared store; the newest version is held now and then."""
        rng = self._world.rng
        store = rng.choice(STORES)
        dice = rng.random()
        if dice < 0.15:
            number = rng.randint(1, process.newest.get(store, 0) + 2)
            yield ("version", store, number, ())
        elif dice < 0.3:
            by = tuple(rng.sample(process.proposed, min(1, len(process.proposed))))
            if by:
                yield ("version", store, 0, by)
        newest = process.newest.get(store, 0)
        if newest and rng.random() < 0.2:
            yield ("hold", store, newest)
            yield ("think", 0.05)
        pin = process.held.get(store) if rng.random() < 0.3 else process.newest.get(store)
        if not pin or rng.random() < 0.2:
            return proposal
        if proposal.restore_path is None and rng.random() < 0.3:
            proposal = replace(proposal, restore_path=f".stores/{store}/{pin}")
        return replace(proposal, reads=((store, pin),))

    def _answer(self, process: _Process, trial: Any) -> Script:
        rng, odds = self._world.rng, self._world.odds
        yield ("think", 0.05)
        dice = rng.random()
        if dice < odds.not_now:
            return e.RequestFailed(trial, e.RequestEnd.NOT_NOW)
        if dice < odds.not_now + odds.tuner_raises:
            kind = rng.choice((e.RequestEnd.ERROR, e.RequestEnd.NONSENSE))
            return e.RequestFailed(trial, kind, "Traceback\nValueError: no")
        if odds.stands and rng.random() < odds.stands:  # an Event of its own, perhaps never set
            yield ("stand", rng.choice((3.0, LONG_S, LONG_S, float("inf"))))
        if odds.thinks and rng.random() < odds.thinks:
            yield ("think", LONG_S)
        what = rng.random()
        if what < 0.05:
            yield ("stand", rng.choice((0.2, 3.0)))
        others = range(max(0, trial - 8), trial + 3)  # itself and later ones among them
        if what < (0.9 if odds.tangled else 0.45):
            count = rng.choice((1, 1, 1, 2, 3))
            if odds.tangled:
                others, count = range(max(0, trial - 3), trial + 4), rng.choice((2, 3))
            parents = tuple(rng.sample(others, min(count, len(others))))
            answer = yield ("wait", parents, rng.choice(("all", "any")))
            if answer == "timeout":
                return e.Proposed(trial, "{}", f"t/{trial}")
            if answer != "granted":
                if rng.random() < 0.3:
                    return e.Proposed(trial, "{}", f"t/{trial}")
                return e.RequestFailed(trial, e.RequestEnd.ABANDONED, parent=parents[0])
            good = [p for p in parents if p in process.verdicts and process.verdicts[p].ok]
            return self._child(process, trial, good or list(parents))
        if what < 0.65:
            return self._child(process, trial, process.proposed[-6:])
        if what < 0.75:
            return e.Proposed(trial, "{}")
        return e.Proposed(trial, "{}", f"t/{trial}")

    def _child(self, process: _Process, trial: Any, parents: list[int]) -> e.Event:
        choice = [p for p in parents if p in process.proposed]
        if not choice:
            return e.Proposed(trial, "{}", f"t/{trial}")
        parent = self._world.rng.choice(choice)
        return e.Proposed(trial, "{}", f"t/{trial}", f"t/{parent}")
