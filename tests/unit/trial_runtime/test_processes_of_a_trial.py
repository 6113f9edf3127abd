"""A trial's processes and their agent, both ends as they are: whatever a trial reports, forks and
waits for, each report arrives once, no wait is in vain, and whoever was to stop hears of it.

Each process is a real one, and the trial's script is drawn. The agent's end is served in the test
itself, on a clock that passes only while nobody has anything to say.
"""

from __future__ import annotations

import os
import tempfile
import time
from typing import Any
from unittest import mock

from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from tests.support.workers import LOCAL
from trial_runtime import link as links
from trial_runtime import trial_wire as wire
from trial_runtime.agent.attempt import Attempt
from trial_runtime.agent.attempts.trial_messages import DirectOffers, TrialMessages
from trial_runtime.agent.base.loop import Timers
from trial_runtime.agent.config import TrialSpec
from trial_runtime.agent.link.reports import Reports
from trial_runtime.agent.trials import endpoint as doors
from trial_runtime.agent.trials.endpoint import TrialEndpoint
from trial_runtime.facts import StartAttempt
from trial_runtime.link import MAX_UNDER_WAY, RECEIPT_EVERY, AgentLink
from trial_runtime.session_file import SESSION_VERSION, SessionFile

SECRET = "the attempt's own"
STOP = '"stop me"'

#: After which a wait is in vain: bounds a hang, decides nothing else.
PATIENCE_S = 30.0

#: No smaller script is looked for: each try at one that hangs takes so long.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)

#: ("report", n): n metrics in a frame, not waited for; ("settle",): a final metric, waited for;
#: ("stop",): the attempt is told to stop; ("look",): whether this process knows whether it was;
#: ("fork", script): another process does that, and is waited for.
Script = list[tuple[Any, ...]]

_STEPS = st.one_of(
    st.tuples(
        st.just("report"), st.sampled_from([1, 3, RECEIPT_EVERY - 1, RECEIPT_EVERY, 300, 520])
    ),
    st.sampled_from([("settle",), ("stop",), ("look",)]),
)
SCRIPTS = st.recursive(
    st.lists(_STEPS, max_size=4),
    lambda inner: st.lists(st.one_of(_STEPS, st.tuples(st.just("fork"), inner)), max_size=4),
    max_leaves=4,
)


class Trial:
    """One process of the trial, by its script."""

    def __init__(self, link: AgentLink) -> None:
        self._link = link
        self.stopped = False

    def act(self, script: Script, name: str = "0") -> None:
        said = 0
        for at, (what, *more) in enumerate(script):
            if what == "report":
                texts = [f'"{name}:{said + each}"' for each in range(more[0])]
                said += more[0]
                self._link.post([wire.Metric(text) for text in texts])
            elif what == "fork":
                self._fork(more[0], f"{name}.{at}")
                self.stopped = self.stopped or _stops(more[0])
            else:
                self._link.post([wire.Final(STOP if what == "stop" else '"x"')], wait=True)
                self.stopped = self.stopped or what == "stop"
                if what != "settle":
                    assert (self._link.stop_reason is not None) == self.stopped, name

    def _fork(self, script: Script, name: str) -> None:
        assert os.waitpid(_in_another_process(lambda: self.act(script, name)), 0)[1] == 0, name


def _in_another_process(work: Any) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException as error:  # noqa: BLE001 - the top of a process
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(code)


def _stops(script: Script) -> bool:
    return any(what == "stop" or (what == "fork" and _stops(more[0])) for what, *more in script)


def _metrics(script: Script, name: str = "0") -> dict[str, int]:
    """How many metrics each of the processes reports."""
    own = {name: sum(more[0] for what, *more in script if what == "report")}
    for at, (what, *more) in enumerate(script):
        if what == "fork":
            own |= _metrics(more[0], f"{name}.{at}")
    return own


class Clock:
    """In place of ``time`` at the door: nobody waits for it."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


class Agent:
    """Its end: the door, and what is passed on."""

    def __init__(self, folder: str, rate: int, clock: Clock) -> None:
        self._timers = Timers()
        self._clock = clock
        self.words: list[Any] = []
        spec = TrialSpec(".", max_message_rate=rate, nni=True)  # metrics may be texts
        session = SessionFile(SESSION_VERSION, "", SECRET, 3, 1, folder, "{}")
        self.attempt = Attempt(StartAttempt(LOCAL, 3, 1, "{}"), session, "")
        self.door = TrialEndpoint(folder, "w", spec, self._timers)
        self._speaker = self.door.admit(SECRET, self.attempt)
        reports = Reports(spec, self)  # type: ignore[arg-type]
        offers = DirectOffers(reports, self.door)
        self._words = TrialMessages(spec, self.door, reports, offers, holds_weights=False)

    def add(self, word: Any, *, urgent: bool) -> None:
        """In place of the outbox."""
        self.words.append(word.value)
        if word.value == STOP and self.attempt.stop_reason is None:
            self.attempt.stop_reason = "killed by the user"
            for connection in self._speaker.connections:  # as those do that run attempts
                self.door.send(connection, [wire.StopAsked(self.attempt.stop_reason)])

    def serve(self, pid: int) -> int:
        """Until that process has ended; its exit code."""
        while True:
            heard = list(self.door.receive())
            for connection, messages in heard:
                self._words.hear(connection, messages)
            due = self._timers.next()
            if not heard and due is not None:
                self._clock.now = max(self._clock.now, due)
                self._timers.fire(self._clock.now)
            elif not heard:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    for connection, messages in self.door.last_messages(self.attempt):
                        self._words.hear(connection, messages)
                    return os.waitstatus_to_exitcode(status)
                time.sleep(0.0002)  # the processors are theirs


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    phases=PHASES,
    report_multiple_bugs=False,
)
@given(SCRIPTS, st.sampled_from([400, 20_000]), st.sampled_from([None, (3, 1)]))
@example([("report", 5), ("fork", [("settle",), ("report", 3)]), ("settle",)], 20_000, None)
@example([("fork", [("stop",)]), ("look",)], 20_000, None)  # it connects when it is to stop
@example([("look",), ("stop",), ("fork", [("look",), ("fork", [("look",)])])], 20_000, (3, 1))
@example([("report", 520), ("settle",)] * 3, 400, None)  # slowed down time and again
@example([("report", 520)] * (MAX_UNDER_WAY // 520 + 2), 400, None)
def test_whatever_its_processes_do(
    script: Script, rate: int, attempt: tuple[int, int] | None
) -> None:
    clock = Clock()
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(links, "PATIENCE_S", PATIENCE_S),
        mock.patch.object(doors, "time", clock),
    ):
        agent = Agent(folder, rate, clock)

        def trial() -> None:
            link = AgentLink(agent.door.address, SECRET)
            link.attempt = attempt
            Trial(link).act(script)

        try:
            assert agent.serve(_in_another_process(trial)) == 0
        finally:
            agent.door.close()
    heard: dict[str, list[int]] = {name: [] for name in _metrics(script)}
    for word in agent.words:
        name, colon, number = word.strip('"').partition(":")
        if colon:
            heard[name].append(int(number))
    assert heard == {name: list(range(many)) for name, many in _metrics(script).items()}
