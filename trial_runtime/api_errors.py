"""Errors that the functions of a trial may raise, beside the errors about weights.

In a module of their own: a process of 0.1.0 that goes on while this version is installed has its
:mod:`trial_runtime.errors` in memory, and imports late what raises these.
"""

from __future__ import annotations

from trial_runtime.errors import TrialRuntimeError


class InvalidMetric(TrialRuntimeError, ValueError):
    """Raised when a reported value is neither a finite number nor a mapping with a default."""


class ReportRefused(TrialRuntimeError):
    """Raised when the agent does not take a report: too many, or the attempt is over."""


class AgentGone(TrialRuntimeError):
    """Raised when the agent does not answer: what was reported last may not have arrived."""


class NoSavePath(TrialRuntimeError):
    """Raised when weights are to be saved or loaded and neither call nor parameters name a path."""


class ArtefactRefused(TrialRuntimeError):
    """Raised when an artefact is too large, or its name leads out of the attempt's folder."""


class BrokenSession(TrialRuntimeError):
    """Raised when the session file that the environment names cannot be used."""


class AttemptSuperseded(TrialRuntimeError):
    """Raised when an attempt saves a checkpoint after a later attempt of its trial has begun."""


class NoSharedStore(TrialRuntimeError):
    """Raised when there are no shared stores here, or none can have this name."""


class StoreConflict(TrialRuntimeError):
    """Raised when another version of a shared store came first, and nothing was declared that
    brings the two together."""
