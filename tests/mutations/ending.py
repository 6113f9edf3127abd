"""Faults in the ends that a search earns, and in callbacks."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_CORE = ("tests/unit/core/test_earned_ends.py",)
_CALLS = ("tests/unit/sinks/test_callbacks.py",)
_REAL = ("tests/integration/experiment/test_ends.py",)
_ENDS = "dispatcher/core/earned_ends.py"

ENDING: tuple[Mutation, ...] = (
    Mutation(
        "a-loss-is-good-enough-when-it-is-high",
        5,
        "a search that minimizes ends at its first result",
        _ENDS,
        "    if progress.best < target if state.settings.maximize else progress.best > target:\n",
        "    if progress.best < target:\n",
        _CORE,
    ),
    Mutation(
        "an-equal-result-is-progress",
        5,
        "a search that stands still at one value never ends",
        _ENDS,
        "    if gain > 0 and gain >= settings.least_progress:\n",
        "    if gain >= settings.least_progress:\n",
        _CORE,
    ),
    Mutation(
        "small-steps-never-add-up",
        5,
        "a search that gets better slowly is ended",
        _ENDS,
        "        progress.mark, progress.since_mark = number, 0\n    else:\n",
        "        progress.mark, progress.since_mark = number, 0\n    else:\n"
        "        progress.mark = number\n",
        _CORE,
    ),
    Mutation(
        "the-time-of-one-slot-is-the-time-of-all",
        5,
        "eight slots use up eight times the time of trials",
        _ENDS,
        "progress.spent_at + left_s / len(state.running)",
        "progress.spent_at + left_s",
        _CORE,
    ),
    Mutation(
        "time-of-trials-passes-while-nobody-leads",
        5,
        "an experiment that is resumed after a week is over at once",
        "dispatcher/core/transitions/user.py",
        "    spend(state, state.last_event_at)",
        "    spend(state, state.now)",
        _CORE,
    ),
    Mutation(
        "a-call-that-has-returned-is-made-again",
        4,
        "a message is sent twice after a crash, however long before it was sent",
        "dispatcher/sinks/callbacks/sink.py",
        '            file.write(line + "\\n")',
        '            file.write("")',
        _CALLS,
    ),
    Mutation(
        "a-function-that-hangs-is-asked-again",
        6,
        "one call that hangs is the last one",
        "dispatcher/sinks/callbacks/calls.py",
        "            self._functions.close(0.0)\n            self._functions = None\n",
        "",
        _CALLS,
    ),
    Mutation(
        "a-program-that-hangs-stays",
        6,
        "programs of callbacks pile up",
        "dispatcher/sinks/callbacks/calls.py",
        "            _end(process)\n            return _too_long(self._time_limit_s)\n",
        "            return _too_long(self._time_limit_s)\n",
        _CALLS,
    ),
    Mutation(
        "each-catching-up-is-an-end",
        4,
        "the end of an experiment is reported whenever somebody looks after its sinks",
        "dispatcher/sinks/callbacks/sink.py",
        'if last.get("head") == head and last.get("lead", lead) == lead:',
        "if False:",
        _CALLS,
    ),
    Mutation(
        "callbacks-alone-start-no-process",
        4,
        "callbacks of an experiment without sinks are called when somebody catches up by hand",
        "dispatcher/head/led_experiment.py",
        "wanted=bool(config.fed)",
        "wanted=bool(config.sinks)",
        _REAL,
    ),
)
