"""The real engine, core, desk, drivers and store, with peers that say whatever a test likes.

Both drivers believe that their process is there; nobody starts one. Frames reach the engine by
the same door as from a socket, true ones between the others so that the experiment gets on.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from dispatcher.channel import PeerMessage
from dispatcher.control.messages import ControlRequest, encoder
from dispatcher.control.server import ControlServer
from dispatcher.core import actions as a
from dispatcher.core import apply, check, new_state, outstanding
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.settings import Settings, StallPolicy, TunerErrorPolicy
from dispatcher.engine import Engine
from dispatcher.errors import UserError
from dispatcher.ports import JournalEntry, RefusedEvent
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.replay.history import replay
from dispatcher.tuner_host import messages as tuner_wire
from dispatcher.tuner_host.config import TunerHostConfig
from dispatcher.tuner_host.driver import TunerHostDriver
from tests.fuzz.frames import Frames
from tests.support.local_backend import LocalBackend
from tests.support.replaying import differences
from tests.support.workers import agent_config
from trial_runtime import facts, wire
from trial_runtime.endpoint import Endpoint
from trial_runtime.fact_wire import encode_fact
from trial_runtime.facts import EndReason
from trial_runtime.refusals import Refusals

SETTINGS = Settings(
    slots=3,
    lookahead=8,
    on_tuner_error=TunerErrorPolicy.CONTINUE,
    on_stall=StallPolicy.WAIT,
    trial_retries=1,
    retry_backoff_s=0.0,
)

#: A worker that is not to be trusted, and what it reports, publishes and says.
TAKEN_OVER = "taken-over"
EVIL = "666"


class _Link:
    """A place on a ROUTER that takes all and says nothing."""

    def send(self, payload: bytes) -> bool:
        return True

    def renew(self, routing_id: str) -> None:
        pass


class _Agentless(LocalBackend):
    """As after an agent has joined; none is started."""

    def _launch(self) -> None:
        pass

    def _alive(self) -> bool:
        return True


class _Hostless(TunerHostDriver):
    """As with a tuner host that has said hello; none is started."""

    def _launch(self) -> None:
        self._heard, self._lost = True, False


class EngineRoom:
    """One experiment in which every frame is made up.

    Args:
        folder: for its store.
        seed: of everything drawn.
        frames: how many of them are said.
        beside: has an agent on another machine, too, which somebody has taken over: it speaks of
            all attempts, and marks what it says with :data:`EVIL`.
    """

    def __init__(self, folder: Path, seed: int, frames: int, *, beside: bool = False) -> None:
        self.draw = random.Random(seed)
        self.left = frames
        self.faults = Refusals()
        self.counted = 0
        self.replies = 0
        self.journal = SqliteJournal.open(folder / "journal.sqlite")
        state = new_state(SETTINGS)
        for event in (e.ExperimentCreated(SETTINGS), e.HeadStarted(1)):
            apply(state, event, 1.0)
            self.journal.append([JournalEntry(1.0, event)], (), durable=True)
        self.now = 1.0
        self.backend = _Agentless(_Link(), agent_config(folder, slots=3))
        self.backends = {"local": self.backend}
        if beside:
            config = replace(agent_config(folder, slots=3), worker=TAKEN_OVER)
            self.backends[TAKEN_OVER] = _Agentless(_Link(), config)
        self.tuner = _Hostless(_Link(), _host_config(folder), folder)
        self.engine = Engine(
            state,
            self.journal,
            self,  # type: ignore[arg-type]
            self.tuner,
            dict(self.backends),
            ControlServer(self._admit, self._update, self._clock),
            self,
            debug=True,
            clock=self._clock,
        )
        self.state = state
        self._sources = {
            "local": Frames((seed, "agent"), self._agent_says),
            "tuner": Frames((seed, "tuner"), self._tuner_says, prefix=b""),
            "": Frames((seed, "user"), self._user_says, prefix=b""),
        }

    def run(self) -> None:
        """Say it all; raises what ended the engine, if anything did."""
        self.engine.begin([a.LaunchTuner(), *outstanding(self.state)])
        self.engine.run()
        if self.engine.error is not None:
            raise self.engine.error
        check(self.state)

    def reopened(self) -> list[str]:
        """What a restart would lose."""
        state, _ = replay(self.journal)
        check(state)
        return differences(self.state, state)

    # -- a router -------------------------------------------------------------------------

    def poll(self, timeout_s: float) -> list[PeerMessage]:
        self.now += 0.01
        if self.left <= 0:
            self.engine.abandon()
            return []
        said = []
        if TAKEN_OVER in self.backends:
            said.append(PeerMessage(TAKEN_OVER, b"peer", self._evil_says(self.draw)))
        for _ in range(self.draw.choice((1, 1, 4, 16))):
            self.left -= 1
            owner = self.draw.choice(("local", "local", "tuner", "tuner", ""))
            source = self._sources[owner]
            true = {"local": self._agent_says, "tuner": self._tuner_says, "": self._user_says}
            frame = true[owner](self.draw) if self.draw.random() < 0.4 else source.next()
            said.append(PeerMessage(owner, b"peer", frame))
        return said

    def send(self, routing_id: bytes, payload: bytes) -> bool:
        self.replies += 1
        return True

    def leave(self, routing_id: bytes) -> None:
        pass

    def wake(self) -> None:
        pass

    # -- a watcher ------------------------------------------------------------------------

    def act(self, action: a.HeadAction) -> None:
        pass

    def stacks(self, stacks: dict[int, str]) -> None:
        pass

    def peer_fault(self, owner: str, error: Exception) -> None:
        self.faults.count(owner or "user")

    def refused(self, refused: RefusedEvent) -> None:
        self.faults.count(refused.owner or "user")

    # -- what honest peers would say --------------------------------------------------------

    def _agent_says(self, draw: random.Random) -> bytes:
        backend, state = self.backend, self.state
        if not state.workers or draw.random() < 0.03:
            holds = [(int(t), state.trials[t].attempt) for t in state.running]
            first = backend.statistics().messages + 1
            said: wire.FromAgent = wire.AgentHello(
                backend._incarnation or "life", "local", 3, 7, holds, first
            )
        elif draw.random() < 0.1:
            said = wire.Heartbeat(
                backend._incarnation,
                len(state.running),
                backend.statistics().messages,
                {"flood": 1},
            )
        else:
            words = [self._word(draw) for _ in range(draw.choice((1, 2, 5)))]
            said = wire.AttemptMessages(
                backend.statistics().messages + 1, [encode_fact(w) for w in words]
            )
        return wire.frame(wire.AgentFrame(1, [said]))

    def _word(self, draw: random.Random) -> facts.AttemptFact:
        running = list(self.state.running)
        trial = draw.choice(running) if running else TrialId(draw.randrange(20))
        attempt = self.state.trials[trial].attempt if running else 1
        seq = draw.randrange(1, 200)
        match draw.randrange(6):
            case 0:
                return facts.AttemptStarted(trial, attempt, 77)
            case 1:
                return facts.MetricReported(trial, attempt, seq, "0.25")
            case 2:
                return facts.FinalReported(trial, attempt, seq, '{"default":0.5}')
            case 3:
                return facts.WeightsPublished(
                    trial, attempt, seq, facts.Weights("ab", "bequeath", 10)
                )
            case _:
                reason = draw.choice(sorted(EndReason))
                return facts.AttemptEnded(
                    trial,
                    attempt,
                    reason,
                    exit_code=0,
                    text="text",
                    weights=facts.Weights("ab", "files", 1),
                    cpu_s=0.1,
                    wall_s=0.2,
                )

    def _evil_says(self, draw: random.Random) -> bytes:
        """Whatever would decide the search, of attempts wherever they run."""
        backend, state = self.backends[TAKEN_OVER], self.state
        worker = state.workers.get(WorkerId(TAKEN_OVER))
        trial = TrialId(draw.randrange(len(state.trials) + 1))
        newest = state.trials[trial].attempt if trial in state.trials else 0
        attempt = max(0, newest + draw.choice((-1, 0, 0, 0, 1)))
        if worker is None or not worker.alive or draw.random() < 0.02:
            everything = [(int(t), each.attempt) for t, each in state.trials.items()]
            first = backend.statistics().messages + 1
            life = f"life {draw.randrange(9)}"
            said: wire.FromAgent = wire.AgentHello(life, TAKEN_OVER, 99, 7, everything, first)
        else:
            seq = draw.randrange(1, 200)
            word = draw.choice(
                (
                    facts.AttemptStarted(trial, attempt, 666),
                    facts.MetricReported(trial, attempt, seq, EVIL),
                    facts.FinalReported(trial, attempt, seq, EVIL),
                    facts.WeightsPublished(trial, attempt, seq, facts.Weights(EVIL, "files", 10)),
                    facts.AttemptEnded(
                        trial,
                        attempt,
                        EndReason.FINISHED,
                        text=EVIL,
                        weights=facts.Weights(EVIL, "files", 0),
                    ),
                )
            )
            said = wire.AttemptMessages(backend.statistics().messages + 1, [encode_fact(word)])
        return wire.frame(wire.AgentFrame(1, [said]))

    def _tuner_says(self, draw: random.Random) -> bytes:
        state = self.state
        values: list[object] = []
        if not state.host_ready or draw.random() < 0.02:
            values.append(e.TunerHostReady())
        for trial in list(state.delivering)[:3]:
            values += [e.ResultDelivered(trial), e.EndDelivered(trial)]
        for trial in list(state.open)[:3]:
            parents = tuple(list(state.trials)[-3:])
            values.append(
                draw.choice(
                    (
                        e.Proposed(trial, '{"x":1}', f"t/{trial}", None),
                        e.Proposed(trial, '{"x":1}', f"t/{trial}", f"t/{draw.randrange(9)}"),
                        e.WaitStarted(trial, 1, parents, "any"),
                        e.RequestFailed(trial, e.RequestEnd.ERROR, "text"),
                        e.ForeignWaitSeen(trial),
                    )
                )
            )
        for trial in list(state.blocked)[:2]:
            values.append(e.WaitGivenUp(trial, 1))
        values = values or [tuner_wire.Note("text"), e.StacksReported({1: "stack"})]
        if draw.random() < 0.1:
            values.append(e.TunerStateTaken('{"a":1}'))
        return tuner_wire.encode(values)[0]

    def _user_says(self, draw: random.Random) -> bytes:
        trials = list(self.state.trials) or [TrialId(0)]
        verb, arguments = draw.choice(
            (
                ("ping", {}),
                ("snapshot", {}),
                ("stop_trial", {"trial": draw.choice(trials)}),
                ("submit", {"parameters": {"x": 1, "save_path": f"h/{draw.randrange(99)}"}}),
                ("update", {"key": "maxTrialNumber", "value": 5}),
            )
        )
        return encoder.encode(ControlRequest(draw.randrange(99), verb, arguments))

    # -- what a head does for the desk ------------------------------------------------------

    def _clock(self) -> float:
        return self.now

    def _admit(self, parameters: dict[str, Any]) -> e.TrialSubmitted:
        try:
            text = json.dumps(parameters, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise UserError(str(error)) from error
        save = parameters.get("save_path")
        return e.TrialSubmitted(text, save if isinstance(save, str) else None)

    def _update(self, key: str, value: Any) -> list[e.Event]:
        return [e.SearchSpaceUpdated("{}")]

    def close(self) -> None:
        self.journal.close()


def _host_config(folder: Path) -> TunerHostConfig:
    return TunerHostConfig(endpoint=Endpoint("ipc://nowhere"), weights_root="w", builtin="Random")
