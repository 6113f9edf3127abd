"""The errors of an experiment file, all at once and in the order of the file."""

from __future__ import annotations

from collections.abc import Sequence

from dispatcher.errors import ExperimentFileError

MOST_SHOWN = 20
"""Beyond this a list of errors is noise: the first few usually explain the rest."""


class Misfit(ValueError):
    """Raised by validators for values that are fine alone and do not fit each other.

    Attributes:
        at: keys that lead to the value to change.
        hint: what would mend it.
    """

    def __init__(self, text: str, *, at: tuple[str | int, ...] = (), hint: str = "") -> None:
        super().__init__(text)
        self.at = at
        self.hint = hint


class ExperimentFileErrors(ExperimentFileError):
    """Raised with everything that is wrong with an experiment file.

    With one error it reads like that error; with several, ``str()`` shows one after the
    other, at most :data:`MOST_SHOWN`.

    Attributes:
        errors: the errors, in the order of the file; each has ``message``, ``hint``, ``where``.
    """

    def __init__(self, errors: Sequence[ExperimentFileError]) -> None:
        self.errors = tuple(errors)
        first = self.errors[0]
        if len(self.errors) == 1:
            super().__init__(first.message, hint=first.hint, where=first.where)
            return
        shown = [str(error) for error in self.errors[:MOST_SHOWN]]
        if len(self.errors) > MOST_SHOWN:
            shown.append(f"… and {len(self.errors) - MOST_SHOWN} more")
        super().__init__("\n".join(shown))
