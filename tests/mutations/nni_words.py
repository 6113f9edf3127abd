"""Faults of the words of ``nnictl``, and of reading files of NNI's."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_WORDS = ("tests/unit/cli/nni",)
_FILES = ("tests/unit/experiment/nni",)

NNI_WORDS = (
    Mutation(
        "debug-is-taken-and-dropped",
        9,
        "`nni create --debug` starts an experiment like any other",
        "dispatcher/cli/nni/create.py",
        "    if not debug:\n        return config",
        "    if not debug or debug:\n        return config",
        _WORDS,
    ),
    Mutation(
        "the-lowest-results-are-the-highest",
        9,
        "`nni trial ls --tail` lists the best trials",
        "dispatcher/cli/nni/trial.py",
        "reverse=head is not None",
        "reverse=True",
        _WORDS,
    ),
    Mutation(
        "refused-commands-complain-of-their-options",
        9,
        "`nni algo register --meta FILE` says that there is no option --meta",
        "dispatcher/cli/nni/refused.py",
        '{"ignore_unknown_options": True}',
        "{}",
        _WORDS,
    ),
    Mutation(
        "requests-without-parameters-are-listed-as-trials",
        9,
        "scripts that read NNI's list of trials find some without parameters",
        "dispatcher/cli/nni_rows.py",
        "    return trial.proposed_at is not None or trial.by_hand",
        "    return True",
        _WORDS,
    ),
    Mutation(
        "a-refused-service-counts-as-a-local-one",
        9,
        "a file with a service that is not here is told that its machine is named twice",
        "dispatcher/experiment/nni/v2.py",
        'if "trainingService" in one.values:  # one that was refused is nowhere',
        'if one.values.setdefault("trainingService", {}) is not None:',
        _FILES,
    ),
    Mutation(
        "a-space-in-annotated-code-is-missed-as-well",
        9,
        "one refused key of NNI's is said as two errors",
        "dispatcher/experiment/nni/sections.py",
        '        draft.broken.add("searchSpace")  # it would have been in the code',
        "        pass",
        _FILES,
    ),
    Mutation(
        "the-first-of-equal-keys-counts",
        9,
        "of a key that a file of NNI's has twice the first one counts",
        "dispatcher/experiment/source.py",
        "                self.source.doubles.append(error)\n",
        "                self.source.doubles.append(error)\n                continue\n",
        _FILES,
    ),
    Mutation(
        "an-import-is-told-to-every-host-anew",
        2,
        "results of another experiment are told again to each new tuner host",
        "dispatcher/core/transitions/user.py",
        "state.imports.pop(event.number, None) is None",
        "state.imports.get(event.number) is None",
        ("tests/unit/core/test_imports.py",),
    ),
    Mutation(
        "an-import-is-forgotten-by-a-restart",
        2,
        "a rebuilt tuner is not told what was imported",
        "dispatcher/tuner_host/restore.py",
        "            self._calls.import_data(json.loads(data))",
        "            json.loads(data)",
        ("tests/integration/tuner_host/test_restoring.py",),
    ),
    Mutation(
        "the-model-of-the-smallest-budget-is-used",
        9,
        "BOHB draws by results of the smallest budget",
        "tuners/bohb.py",
        "for budget in sorted(self._seen, reverse=True):",
        "for budget in sorted(self._seen):",
        ("tests/unit/tuners/test_bohb.py",),
    ),
    Mutation(
        "good-and-other-results-are-confused",
        9,
        "BOHB draws where results were bad",
        "tuners/bohb.py",
        "rows.sort(key=lambda row: -row[0])",
        "rows.sort(key=lambda row: row[0])",
        ("tests/unit/tuners/test_bohb.py",),
    ),
)
