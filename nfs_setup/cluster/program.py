"""This package as it travels, packed by the caller, who knows how Python gets to a machine."""

from __future__ import annotations

from dataclasses import dataclass

#: Not needed where a request is carried out.
STAYS = ("cluster",)


@dataclass(frozen=True)
class Program:
    """This package, but for :data:`STAYS`, packed for a Python of 3.9 that has nothing of it.

    Attributes:
        code: goes first into its input, before the request.
        arguments: make a Python run it, if it came whole.
    """

    code: bytes
    arguments: tuple[str, ...]

    def command(self, python: str) -> tuple[str, ...]:
        """Return the command that runs it."""
        return (python, *self.arguments)
