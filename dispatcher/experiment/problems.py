"""The errors of an experiment file, all at once and in the order of the file."""

from __future__ import annotations

from collections.abc import Sequence

from dispatcher.errors import ExperimentFileError, SeveralErrors


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


class Misfits(ValueError):
    """Raised by a validator that has found several at once.

    Attributes:
        misfits: what was found, each with a text that names its key.
    """

    def __init__(self, misfits: Sequence[Misfit]) -> None:
        super().__init__("; ".join(map(str, misfits)))
        self.misfits = tuple(misfits)


class ExperimentFileErrors(SeveralErrors, ExperimentFileError):
    """Raised with everything that is wrong with an experiment file.

    Attributes:
        errors: the errors, in the order of the file; each has ``message``, ``hint``, ``where``.
    """
