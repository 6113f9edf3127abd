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
    """Asks models; keeps the last one warm if it may. Any thread.

    Args:
        keep_s: seconds that a process stays after its last answer; 0: not at all.
    """

    def __init__(self, keep_s: float = 0.0) -> None:
        self._keep_s = keep_s
        self._places = threading.BoundedSemaphore(MOST_AT_ONCE)
        self._lock = threading.Lock()
        self._warm: _Warm | None = None
        self._timer: threading.Timer | None = None
        self._closed = False

    def ask(self, model: TrainedModel, request: dict[str, Any], bounds: ModelBounds) -> ModelAsked:
        """Ask a model, in a process of its own. Blocks, for a bounded time.

        Args:
            model: the model.
            request: what its ``infer`` gets.
            bounds: of the process.

        Raises:
            PassingBackendError: others are being asked.
            BequeathError: as of :class:`ModelProcess`.
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
        with self._lock:
            self._closed = True
        self._let_go()

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
        with self._lock:
            warm, self._warm = self._warm, None
            self._stop_timer()
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
        with self._lock:
            if self._closed:
                return False
            before, self._warm = self._warm, warm
            self._stop_timer()
            timer = threading.Timer(self._keep_s, self._let_go)
            timer.daemon = True
            timer.name = "infer-warm"
            self._timer = timer
            timer.start()
        if before is not None:
            before.process.close()
        return True

    def _let_go(self) -> None:
        with self._lock:
            warm, self._warm = self._warm, None
            self._stop_timer()
        if warm is not None:
            warm.process.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
