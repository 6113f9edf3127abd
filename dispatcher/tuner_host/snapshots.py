"""Takes the tuner's own ``state()`` now and then, while the tuner is at rest.

At rest means: no result is being delivered (the delivery thread itself asks) and every
request thread is blocked in ``wait_for`` or gone, and kept so for the time of the call. The
state then covers exactly the messages sent before it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from dispatcher.core.events import TunerStateTaken
from dispatcher.tuner_host.messages import FRAME_BYTES
from dispatcher.tuner_host.request import Say
from dispatcher.tuner_host.run_token import RunToken
from dispatcher.tuner_host.signatures import TunerCalls
from dispatcher.tuner_host.tracebacks import describe
from trial_runtime.failpoints import failpoint

#: States above this size are not kept (bytes): they would not fit into one message.
MAX_STATE_BYTES = 6 * FRAME_BYTES


class Snapshots:
    """Takes states for the delivery thread; other threads do not call it.

    Args:
        calls: the tuner.
        run_token: keeps requests out of author's code meanwhile.
        every: deliveries between two states.
        period_s: seconds after which one is due with fewer deliveries.
        after: called when a pause is over, to start requests that came in meanwhile.
        note: takes a text for the user, once, if a tuner that offers ``state`` is rebuilt by
            replay all the same.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        calls: TunerCalls,
        run_token: RunToken,
        every: int,
        period_s: float,
        *,
        after: Callable[[], None],
        note: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._calls = calls
        self._run_token = run_token
        self._every = every
        self._period_s = period_s
        self._after = after
        self._note = note
        self._clock = clock
        self._deliveries = 0
        self._last = clock()
        self._wanted = calls.keeps_state
        if calls.lacks_restore:
            note(
                "the tuner defines state() and no restore(), so that nobody asks for its state: "
                "it is rebuilt by repeating its calls instead."
            )

    def count(self) -> None:
        """Count a delivery."""
        self._deliveries += 1

    def due_in(self) -> float | None:
        """Seconds until a state is due although nothing is delivered; None: not at all."""
        if not self._wanted or not self._deliveries:
            return None
        return max(0.05, self._last + self._period_s - self._clock())

    def try_take(self) -> TunerStateTaken | None:
        """Take a state if one is due and the tuner at rest. Call :meth:`over` once it is sent."""
        if not self._wanted or not self._due() or not self._run_token.try_pause():
            return None
        message = self._take()
        if message is None:
            self.over()
        return message

    def over(self) -> None:
        """Let requests in again."""
        self._run_token.resume()
        self._after()

    def take_if_due(self, say: Say) -> None:
        """Take and send a state while nothing is being delivered."""
        message = self.try_take()
        if message is not None:
            say(message)
            self.over()
        elif self._due():
            self._last = self._clock()  # not at rest: look again after a period

    def _due(self) -> bool:
        if self._deliveries >= self._every:
            return True
        return self._deliveries > 0 and self._clock() >= self._last + self._period_s

    def _take(self) -> TunerStateTaken | None:
        self._last = self._clock()
        self._deliveries = 0
        try:
            state = self._calls.state()
            if state is None:
                return None
            text = json.dumps(state, separators=(",", ":"))
        except BaseException as error:  # noqa: BLE001 - becomes a note; replay works without
            text = describe(error)
            self._give_up(f"state() cannot be kept: {text.rpartition(chr(10))[2]}\n{text}")
            return None
        if len(text) > MAX_STATE_BYTES:
            self._give_up(f"state() is {len(text):,} bytes; {MAX_STATE_BYTES:,} are kept at most")
            return None
        failpoint("host.state.taken")
        return TunerStateTaken(text)

    def _give_up(self, reason: str) -> None:
        self._wanted = False
        self._note(f"{reason}\nThe tuner is rebuilt by repeating its calls instead.")
