"""Errors of an API server, by whether asking again helps, and whether anything was done."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dispatcher.errors import BackendError, PassingBackendError
from dispatcher.http_services.errors import (
    LONGEST_TEXT,
    AlreadyThere,
    Busy,
    Conflict,
    Invalid,
    NotAllowed,
    NotLoggedIn,
    NotThere,
    OverQuota,
    Unreachable,
    Untrusted,
)

__all__ = [
    "AlreadyThere",
    "Busy",
    "Conflict",
    "Invalid",
    "NotAllowed",
    "NotLoggedIn",
    "NotThere",
    "OverQuota",
    "TooOld",
    "Unreachable",
    "Untrusted",
    "error_of",
]

#: The longest pause that a server may ask for (seconds): nobody is helped by waiting longer.
LONGEST_RETRY_AFTER_S = 30.0

_QUOTA = re.compile(r"exceeded quota|quota .*exceeded|failed quota", re.IGNORECASE)

#: Words of those who have a say in what is created: no right would change their mind.
_REFUSED = re.compile(
    r"denied (the )?request|violates PodSecurity|security context constraint"
    r"|error looking up service account|no PriorityClass with name",
    re.IGNORECASE,
)


class TooOld(PassingBackendError):
    """Raised when the server has forgotten what happened since a version: list anew (410)."""


def error_of(
    status: int, document: object, *, asked: str, where: str, retry_after: str | None = None
) -> BackendError:
    """Return the error that an answer stands for.

    Args:
        status: that of the answer, or the code of an event of a watch.
        document: the answer: a ``Status`` of the API, or anything.
        asked: what was asked, for people: ``create jobs in 'trials'``.
        where: the server, for people.
        retry_after: the header of that name.
    """
    body = document if isinstance(document, Mapping) else {}
    reason, text = str(body.get("reason") or ""), _text(body, status)
    message = f"cannot {asked}: {text}"
    match status:
        case 401:
            hint = "log in to the cluster again, or have the token renewed"
            return NotLoggedIn(message, hint=hint, where=where)
        case 403 if _QUOTA.search(text):
            return OverQuota(message, where=where)
        case 403 if _REFUSED.search(text):
            return Invalid(message, where=where)
        case 403:
            hint = "`bequeath kubernetes rights USER` prints the Role for its administrators"
            return NotAllowed(message, hint=hint, where=where)
        case 404:
            return NotThere(message, where=where)
        case 409 if reason == "AlreadyExists" and "being deleted" not in text:
            return AlreadyThere(message, where=where)
        case 409:
            return Conflict(message, where=where)
        case 410:
            return TooOld(message, where=where)
        case 429 | 500 | 502 | 503 | 504:
            error = Busy(message, where=where)
            error.retry_after_s = _seconds(retry_after, body)
            return error
        case _ if 400 <= status < 500:
            return Invalid(message, where=where)
        case _:
            return Unreachable(message, where=where)


def _text(body: Mapping[str, Any], status: int) -> str:
    text = " ".join(str(body.get("message") or "").split())
    return text[:LONGEST_TEXT] or f"it answers {status}"


def _seconds(retry_after: str | None, body: Mapping[str, Any]) -> float:
    details = body.get("details")
    given: object = retry_after
    if given is None and isinstance(details, Mapping):
        given = details.get("retryAfterSeconds")
    try:
        seconds = float(str(given))
    except ValueError:
        return 0.0
    return min(max(0.0, seconds), LONGEST_RETRY_AFTER_S) if seconds == seconds else 0.0
