"""Faults in searches by several objectives: results that lack one, bounds, and volumes."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_ENDINGS = ("tests/unit/core/test_endings.py",)
_ROWS = ("tests/unit/store/test_refused_results.py",)
_FRONT = ("tests/unit/queries/test_front.py",)
_VOLUME = ("tests/unit/plots/test_hypervolume.py",)
_TUNERS = ("tests/unit/tuners/test_objectives.py",)
_OPTUNA = ("tests/unit/tuners/optuna/test_objectives.py",)

BALANCING: tuple[Mutation, ...] = (
    Mutation(
        "a-result-without-an-objective-counts",
        2,
        "a trial that left a number out makes the tuner raise, and the experiment fails",
        "dispatcher/core/endings.py",
        "    if not name:\n        return ending\n",
        "    return ending\n",
        _ENDINGS,
    ),
    Mutation(
        "nobody-hears-what-a-result-lacks",
        10,
        "a trial has failed with exit code 0, and nothing says why",
        "dispatcher/core/transitions/attempt.py",
        "    trial.refusal = ending.refusal\n",
        "",
        _ROWS,
    ),
    Mutation(
        "a-bound-is-for-tuners-only",
        2,
        "a network that is too large is handed out as the best",
        "dispatcher/queries/fronts.py",
        "        if point is not None and within(value, bounds):\n",
        "        if point is not None:\n",
        _FRONT,
    ),
    Mutation(
        "the-best-is-beyond-its-bound",
        2,
        "a network that is too large is handed out as the best",
        "dispatcher/queries/trials.py",
        "    kept = bounds_as_sql(reader)\n",
        '    kept = Sql("1", ())\n',
        _FRONT,
    ),
    Mutation(
        "a-volume-counts-a-slice-twice",
        8,
        "a picture says that a search has come further than it has",
        "dispatcher/plots/volume.py",
        "    thick = first - np.append(first[1:], 0.0)\n",
        "    thick = first\n",
        _VOLUME,
    ),
    Mutation(
        "the-crowd-is-judged-without-bounds",
        2,
        "evolution breeds from networks that may never be handed out",
        "tuners/evolution.py",
        "[one.far for one in population])",
        "[])",
        _TUNERS,
    ),
    Mutation(
        "a-sampler-sees-a-bound-turned-round",
        2,
        "Optuna looks for what is not allowed",
        "tuners/objectives.py",
        "        return number - self.bound if self.is_most else self.bound - number\n",
        "        return self.bound - number if self.is_most else number - self.bound\n",
        _OPTUNA,
    ),
)
