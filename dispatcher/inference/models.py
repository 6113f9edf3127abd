"""Models that are asked: how many at once, and one that stays warm for a while."""

from __future__ import annotations

import threading
import time
from typing import Any, Final, NamedTuple

import psutil

from dispatcher.errors import PassingBackendError
from dispatcher.inference.process import ModelAnswer, ModelBounds, ModelFailed, ModelProcess
from dispatcher.inference.trained import TrainedModel

#: Models that are asked at once.
MOST_AT_ONCE: Final = 2

#: Seconds that a process stays after its last answer, and in all.
IDLE_S: Final = 60.0
OLDEST_S: Final = 600.0

#: Seconds between looks at one that nobody asks, and the processor seconds that it may take then.
LOOK_S: Final = 1.0
IDLE_CPU_S: Final = 5.0

#: Seconds for an answer and for loading, unless others are asked for.
ANSWER_S: Final = 30.0
LOAD_S: Final = 120.0


def usual_memory() -> int:
    """Return the bytes that a process may have unless others are asked for: half of what there
    is."""
    return int(psutil.virtual_memory().total // 2)


class ModelAsked(NamedTuple):
    """An answer; ``loaded_s``: seconds that loading took, 0 if the model was warm."""

    answer: ModelAnswer
    loaded_s: float


class _Warm(NamedTuple):
    key: tuple[Any, ...]
    process: ModelProcess
    began: float


class Models:
    """Asks models; keeps the last one warm if it may, within the bounds of one that is asked. Any
    thread.

    Args:
        keep_s: seconds that a process stays after its last answer; 0: not at all.
    """

    def __init__(self, keep_s: float = 0.0) -> None:
        self._keep_s = keep_s
        self._places = threading.BoundedSemaphore(MOST_AT_ONCE)
        self._turn = threading.Condition()
        self._warm: _Warm | None = None  # changes in its turn, and wakes who looks after it
        self._closed = False

    def ask(self, model: TrainedModel, request: dict[str, Any], bounds: ModelBounds) -> ModelAsked:
        """Ask a model, in a process of its own. Blocks, for a bounded time.

        Args:
            model: the model.
            request: what its ``infer`` gets.
            bounds: of the process.

        Raises:
            PassingBackendError: others are being asked.
            DispatcherError: as of :class:`ModelProcess`.
        """
        if not self._places.acquire(blocking=False):
            raise PassingBackendError(
                f"{MOST_AT_ONCE} models are being asked already", hint="try again in a while"
            )
        try:
            return self._asked(model, request, bounds)
        finally:
            self._places.release()

    def close(self) -> None:
        """End what is warm, and keep nothing from now on."""
        with self._turn:
            self._closed = True
        before = self._exchanged(None)
        if before is not None:
            before.process.close()

    def _asked(
        self, model: TrainedModel, request: dict[str, Any], bounds: ModelBounds
    ) -> ModelAsked:
        key = (*model.key, bounds.memory_bytes)
        warm = self._taken(key)
        if warm is None:
            process = ModelProcess(model, bounds)
            warm = _Warm(key, process, time.monotonic())
            loaded_s = process.loaded_s
        else:
            loaded_s = 0.0
        keep = False
        try:
            answer = warm.process.ask(request, bounds.answer_s)
            keep = True
        except ModelFailed as error:
            keep = not error.ended
            raise
        finally:
            if not (keep and self._put(warm)):
                warm.process.close()
        return ModelAsked(answer, loaded_s)

    def _taken(self, key: tuple[Any, ...]) -> _Warm | None:
        """Return the warm process if it is the one that is wanted; another one is ended."""
        warm = self._exchanged(None)
        if warm is None:
            return None
        young = time.monotonic() - warm.began < OLDEST_S
        if warm.key == key and young and warm.process.alive:
            return warm
        warm.process.close()
        return None

    def _put(self, warm: _Warm) -> bool:
        """Keep a process for a while in place of the one that is kept; false if it is not."""
        if not self._keep_s:
            return False
        warm = warm._replace()  # another one than before, for who looks after that
        with self._turn:
            if self._closed:
                return False
            before = self._exchanged(warm)
        looking = threading.Thread(target=self._look_after, args=(warm,), name="infer-warm")
        looking.daemon = True
        looking.start()
        if before is not None:
            before.process.close()
        return True

    def _exchanged(self, warm: _Warm | None) -> _Warm | None:
        """Return the one that is warm, and put another one, or none, in its place."""
        with self._turn:
            before, self._warm = self._warm, warm
            self._turn.notify_all()
            return before

    def _look_after(self, warm: _Warm) -> None:
        """End a process when its time is over, or it takes more than it may: code of the user's may
        run on in it while nobody asks. Until it is taken."""
        until = time.monotonic() + self._keep_s
        with self._turn:
            while self._warm is warm:
                left = until - time.monotonic()
                if left <= 0 or not warm.process.fits_idle(IDLE_CPU_S):
                    self._warm = None
                    break
                self._turn.wait(min(LOOK_S, left))
            else:
                return
        warm.process.close()
