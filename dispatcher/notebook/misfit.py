"""The reason why a value of a notebook cannot be had by another process, before it has a place."""

from __future__ import annotations

import re

from trial_runtime.errors import BequeathError


class CannotTravel(BequeathError):
    """Raised for a value that is no data, or too much of it. The code that knows which variable it
    is makes an error for people of it.

    Args:
        reason: half a sentence about the value.
        hint: advice what to write instead, with ``x`` for the variable.
    """

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason, hint=hint)

    def hint_for(self, name: str) -> str:
        """Return the advice for a variable of this name."""
        return re.sub(r"\bx\b", name, self.hint)
