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
)
