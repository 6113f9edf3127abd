"""Parts of both of Google's tuning jobs: goals, algorithms, early stops, and `hypertune`."""

from __future__ import annotations

from typing import Any

from dispatcher.foreign_files.translation import Translation
from tuners.plain_json import JsonPath

#: The name under which hypertune reports where a program gives none.
USUAL_TAG = "training/hptuning/metric"

GOALS = {
    "MAXIMIZE": "maximize",
    "MINIMIZE": "minimize",
    "GOAL_TYPE_UNSPECIFIED": "maximize",
}
_TUNERS = {
    "ALGORITHM_UNSPECIFIED": "TPE",
    "RANDOM_SEARCH": "Random",
    "GRID_SEARCH": "GridSearch",
}
_STANDS_IN = "TPE stands in for Google's own search (Vizier)"


def put_algorithm(translation: Translation, value: Any, at: JsonPath) -> str:
    """Put the tuner under our key, and return its name; empty if there is none of that name.

    Args:
        translation: takes it.
        value: the file's word.
        at: its path in the file.
    """
    tuner = translation.choose(value, at, _TUNERS)
    if tuner is None:
        translation.draft.broken.add("tuner")
        return ""
    note = _STANDS_IN if tuner == "TPE" else ""
    translation.put(("tuner", "name"), tuner, at, note)
    if note and not translation.is_ours("tuner"):
        translation.draft.remark(note)
    return str(tuner)


def put_failures(translation: Translation, value: Any, at: JsonPath) -> None:
    """Put the number of failures that end the search; 0 leaves it to the service, and to us.

    Args:
        translation: takes it.
        value: the file's number.
        at: its path in the file.
    """
    if value == 0 and not isinstance(value, bool):
        translation.draft.drop(at, "0 leaves it to the service, and to us here")
        return
    note = "failures in a row count here, and those in all do not"
    translation.put(("maxFailedTrialsInARow",), value, at, note)
    translation.draft.remark(f"'{at[-1]}': {note}")


def put_early_stop(translation: Translation, at: JsonPath, stands_in_for: str = "") -> None:
    """Put the assessor under our key.

    Args:
        translation: takes it.
        at: the path of what asks for it.
        stands_in_for: the rule that the service has in its place; empty if it is the same.
    """
    translation.put(("assessor", "name"), "Medianstop", at)
    kept = "the last value of a trial that was stopped counts, as with Google"
    translation.put(("assessor", "keepResult"), True, at, kept)
    if stands_in_for:
        translation.draft.remark(f"Medianstop stands in for {stands_in_for}")


def put_gpus(translation: Translation, value: Any, at: JsonPath) -> None:
    """Put a number of accelerators under our key; whole numbers may be texts.

    Args:
        translation: takes it.
        value: the file's number.
        at: its path in the file.
    """
    try:
        number = int(str(value))
    except ValueError:
        translation.draft.refuse(at, f"is no number: {value!r}", is_key=False)
        return
    translation.put(("trialGpuNumber",), number, at)
