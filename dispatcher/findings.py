"""Findings of checks: of this machine, of others, of GPUs; each a sentence that people can act on.

Checks of shares have their own in ``nfs_setup``, which is a package that knows no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """The severity of a finding. A command that finds a ``PROBLEM`` exits with 1."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check: what was looked at, and what to do about it, if anything.

    ``keys``: paths of the keys of an experiment file that it is about, the likeliest first, each
    from the section that was looked at, or from one around it.
    """

    topic: str
    severity: Severity
    text: str
    hint: str = ""
    keys: tuple[tuple[str | int, ...], ...] = ()

    def to_json(self, severity_as: str) -> dict[str, str]:
        """Return it for ``--json``, with the name that the command gives to the severity."""
        fields = {"topic": self.topic, severity_as: self.severity.value}
        return {**fields, "text": self.text, "hint": self.hint}
