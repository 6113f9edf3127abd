"""Files of attempts that the head asks for: read beside the loop, and sent a little at a time."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Optional, Protocol

from trial_runtime import attempt_folder, wire
from trial_runtime.agent.base.helper import Helper
from trial_runtime.agent.base.loop import Timers
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.trials.bounds import Allowance
from trial_runtime.checkpoints import folder_of

#: Questions that may wait or be read; more are passed over.
MOST_QUESTIONS = 4

#: Bytes a second that may go to the head: reports of trials share the line.
RATE = 2 << 20

#: Seconds until the head is tried again that takes nothing at the moment.
TRY_AGAIN_S = 0.05

#: Files of one list.
MOST_LISTED = 10_000


class Line(Protocol):
    """The connection to the head, as answers use it."""

    epoch: int

    def answer(self, given: wire.FileGiven, epoch: int) -> bool:
        """See :meth:`trial_runtime.agent.link.head_link.HeadLink.answer`."""
        ...


class AnsweredFiles:
    """Answers the head's questions, one after another. Owned by the agent's loop.

    One is read at a time, so that a file system that hangs keeps one thread of the helper at most.

    Args:
        config: of the agent.
        helper: reads.
        timers: of the agent's loop.
        line: to the head.
        live: the attempts that run, by trial and number: one may have written nothing yet.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        config: AgentConfig,
        helper: Helper,
        timers: Timers,
        line: Line,
        live: Collection[tuple[int, int]] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._helper = helper
        self._timers = timers
        self._line = line
        self._live = live
        self._clock = clock
        self._waiting: deque[tuple[wire.FileAsked, int]] = deque()
        self._read: Optional[tuple[wire.FileGiven, int]] = None  # to be sent
        self._list = NewestList()
        self._reading = False
        self._allowance = Allowance(RATE, clock())
        self._planned = False

    def take(self, questions: Iterable[wire.FileAsked]) -> None:
        """Take questions of the head that leads."""
        for question in questions:
            under_way = len(self._waiting) + self._reading + (self._read is not None)
            if under_way < MOST_QUESTIONS:
                self._waiting.append((question, self._line.epoch))
        self._begin()

    def send(self) -> None:
        """Send what was read, if it is time."""
        if self._read is None or self._planned:
            return
        now = self._clock()
        self._allowance.spend(0.0, now)
        pause_s = self._allowance.debt_s()
        if not pause_s:
            given, epoch = self._read
            if self._line.answer(given, epoch):
                self._allowance.spend(len(given.data), now)
                self._read = None
                self._begin()
                return
            pause_s = TRY_AGAIN_S
        self._planned = True
        self._timers.at(now + pause_s, self._due)

    def _due(self) -> None:
        self._planned = False  # the turn that made this call sends

    def _begin(self) -> None:
        if self._reading or self._read is not None or not self._waiting:
            return
        question, epoch = self._waiting.popleft()
        self._reading = True

        def done(given: wire.FileGiven | None, error: Exception | None) -> None:
            self._reading = False
            text = type(error).__name__
            self._read = (given or wire.FileGiven(question.number, error=text), epoch)

        runs = (question.trial, question.attempt) in self._live
        self._helper.submit(lambda: read(self._config, question, self._list, runs=runs), done)


class NewestList:
    """The list that was made last, kept until its end was read: one that is made anew for each of
    its parts is never twice the same while a trial writes. For one reader at a time."""

    def __init__(self) -> None:
        self._of: Optional[tuple[int, int, bytes, int]] = None
        self._text = b""

    def given(self, question: wire.FileAsked, make: Callable[[], bytes]) -> wire.FileGiven:
        """The part of a list that is asked for.

        Args:
            question: the head's.
            make: makes the list.
        """
        asked = (question.trial, question.attempt, question.path, question.most)
        if not question.offset or asked != self._of:
            self._of, self._text = asked, make()
        text, end = self._text, question.offset + question.limit
        if end >= len(text):
            self._of, self._text = None, b""
        digest = hashlib.blake2b(text, digest_size=16).hexdigest()
        return wire.FileGiven(
            question.number, text[question.offset : end], len(text), digest, digest
        )


def read(
    config: AgentConfig, question: wire.FileAsked, newest: NewestList, *, runs: bool = False
) -> wire.FileGiven:
    """Read what is asked for. Blocks; from any thread.

    Args:
        config: of the agent.
        question: the head's.
        newest: the list of which parts may have been read.
        runs: whether the attempt does, and is no former one of which nothing is left.
    """
    number, path = question.number, os.fsdecode(question.path)
    above = f"{config.trials_folder}/{question.trial}/{question.attempt}"
    folders = {
        "folder": above,
        "work": f"{above}/work" if config.trial.own_folders else "",
        "checkpoints": folder_of(config.weights_root, config.experiment, question.trial),
    }
    try:
        if question.most:
            if not runs and not os.path.isdir(above):
                return wire.FileGiven(number, gone=True)
            most = min(question.most, MOST_LISTED)

            def make() -> bytes:
                return json.dumps(attempt_folder.listed(folders, path, most)).encode()

            return newest.given(question, make)
        head, data = attempt_folder.piece(folders, path, question.offset, question.limit)
    except OSError as error:
        return wire.FileGiven(number, error=error.strerror or str(error))
    if not head:
        return wire.FileGiven(number, gone=True)
    return wire.FileGiven(number, data, head["size"], head["version"], head["identity"])
