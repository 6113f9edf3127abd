"""Faults in what trackers are given: points too many or too few; and who waits for them."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_FEEDING = ("tests/unit/sinks/test_feeding.py",)
_CONFORMANCE = ("tests/unit/sinks/test_conformance.py",)
_BESIDE = ("tests/integration/cli/test_sinks.py",)

FEEDING: tuple[Mutation, ...] = (
    Mutation(
        "files-are-not-cut-back",
        4,
        "TensorBoard shows points twice after a crash",
        "dispatcher/sinks/tensorboard/sink.py",
        "            os.ftruncate(descriptor, place)\n",
        "            pass\n",
        (*_FEEDING, *_CONFORMANCE),
    ),
    Mutation(
        "the-cursor-is-ahead-of-the-tracker",
        4,
        "a tracker that fails loses what it was given",
        "dispatcher/sinks/feeding.py",
        "        flushed = self._sink.flush()\n",
        "        self._file.write(self._cursor)\n        flushed = self._sink.flush()\n",
        _FEEDING,
    ),
    Mutation(
        "points-of-a-superseded-attempt-stay",
        3,
        "a tracker shows what an attempt reported that does not count",
        "dispatcher/sinks/feeding.py",
        "        goes_on = live is not None and live.attempt == run.attempt\n",
        "        goes_on = live is not None\n",
        _FEEDING,
    ),
    Mutation(
        "what-a-power-cut-took-is-still-shown",
        4,
        "trackers go on with trials that the store has no more",
        "dispatcher/sinks/feeding.py",
        "        if look.anew:\n",
        "        if False and look.anew:\n",
        _FEEDING,
    ),
    Mutation(
        "a-short-search-feeds-nobody",
        4,
        "sinks of a search of some seconds are asked to end before they begin",
        "dispatcher/head/sink_process.py",
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})",
        "signal.pthread_sigmask(signal.SIG_BLOCK, set())",
        _BESIDE,
    ),
    Mutation(
        "sinks-outlive-their-head",
        6,
        "a process goes on after its experiment",
        "dispatcher/sinks/serving.py",
        "if not ending.is_set() and (os.getppid() != head or not is_led(folder)):",
        "if False:",
        _BESIDE,
    ),
    Mutation(
        "a-secret-may-be-written-out",
        9,
        "a password is kept with the experiment and shown",
        "dispatcher/experiment/sink_base.py",
        "    if isinstance(value, str) and not value.startswith((ENV, FILE)):\n",
        "    if False:\n",
        ("tests/unit/experiment/test_sinks.py",),
    ),
)
