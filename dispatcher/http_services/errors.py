"""Errors of a service over HTTP, by whether asking again helps, and whether anything was done."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from typing import Any

from dispatcher.errors import BackendError, PassingBackendError, PermanentBackendError

#: Longest text of a server that is passed on (characters).
LONGEST_TEXT = 500

#: Longest code (characters).
LONGEST_CODE = 100

#: The longest pause that a server may ask for (seconds): somebody may have cleared its fault.
LONGEST_RETRY_AFTER_S = 300.0

#: What comes of reading an answer that is not what its service promises: a null where a list is
#: due, a number that is none.
NONSENSE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

_QUOTA = re.compile(r"quota", re.IGNORECASE)

#: Where services put a code for programs, and a text for people.
_CODES = ("code", "Code", "reason", "status")
_TEXTS = ("message", "Message", "errorMessage", "error_description", "detail")


class Unreachable(PassingBackendError):
    """Raised when no answer came, or none that is one. What was asked may have been done."""


class Busy(PassingBackendError):
    """Raised when the server has no time, or a fault of its own (429, 5xx). What was asked may have
    been done.

    Attributes:
        retry_after_s: the pause that it asks for (seconds).
    """

    retry_after_s: float = 0.0


class Untrusted(PermanentBackendError):
    """Raised when the server's certificate is not one of those that we trust: nothing was sent."""


class NotLoggedIn(PermanentBackendError):
    """Raised when the server does not know us any more, or credentials cannot be had (401)."""


class NotAllowed(PermanentBackendError):
    """Raised when we may not do this (403)."""


class OverQuota(PassingBackendError):
    """Raised when a quota leaves no room for an object (403). It may have room later."""


class NotThere(PermanentBackendError):
    """Raised when there is no object of that name, or the server knows no such kind (404)."""


class AlreadyThere(PermanentBackendError):
    """Raised when an object of that name exists (409)."""


class Conflict(PassingBackendError):
    """Raised when an object was changed meanwhile, or is going away (409)."""


class Invalid(PermanentBackendError):
    """Raised when the server does not take an object as it is (400, 413, 415, 422)."""


def error_of_answer(
    status: int, document: object, *, asked: str, where: str, retry_after: str | None = None
) -> BackendError:
    """Return the error that an answer stands for, of a service that answers as most do.

    Args:
        status: that of the answer.
        document: the answer, from JSON if it was that.
        asked: what was asked, for people: ``create the job 'a'``.
        where: the service, for people.
        retry_after: the header of that name.
    """
    text = text_in(document)
    message = f"cannot {asked}: {text or f'it answers {status}'}"
    match status:
        case 401:
            hint = "log in again, or have the token renewed"
            return NotLoggedIn(message, hint=hint, where=where)
        case 403 if _QUOTA.search(f"{code_in(document)} {text}"):
            return OverQuota(message, where=where)
        case 403:
            return NotAllowed(message, where=where)
        case 404 | 410:
            return NotThere(message, where=where)
        case 409:
            return AlreadyThere(message, where=where)
        case 412:
            return Conflict(message, where=where)
        case 408 | 429 | 500 | 502 | 503 | 504:
            error = Busy(message, where=where)
            error.retry_after_s = seconds_in(retry_after)
            return error
        case _ if 400 <= status < 500:
            return Invalid(message, where=where)
        case _ if 300 <= status < 400:
            hint = "name the address itself: what is sent there holds secrets"
            return Invalid(
                f"cannot {asked}: it sends us to another address", hint=hint, where=where
            )
        case _:
            return Unreachable(message, where=where)


def _part(document: object) -> Mapping[str, Any]:
    """The part of an answer that describes its error: all of it, or what ``error`` has."""
    if not isinstance(document, Mapping):
        return {}
    inner = document.get("error")
    return inner if isinstance(inner, Mapping) else document


def text_in(document: object) -> str:
    """The sentence for people in an answer that is an error; empty if there is none."""
    part = _part(document)
    given = next((part[key] for key in _TEXTS if part.get(key)), "")
    return " ".join(str(given).split())[:LONGEST_TEXT]


def code_in(document: object) -> str:
    """The word for programs in an answer that is an error; empty if there is none."""
    part = _part(document)
    return str(next((part[key] for key in _CODES if part.get(key)), ""))[:LONGEST_CODE]


def seconds_in(retry_after: str | None) -> float:
    """The pause that a header ``Retry-After`` asks for (seconds), bounded; 0 if it has none. A date
    is none: clocks differ."""
    try:
        seconds = float(str(retry_after))
    except ValueError:
        return 0.0
    return min(max(0.0, seconds), LONGEST_RETRY_AFTER_S) if seconds == seconds else 0.0


def error_of_exception(
    error: BaseException, *, asked: str, where: str, hint: str
) -> PermanentBackendError | Unreachable:
    """Return the error that an exception of the library stands for.

    Args:
        error: it.
        asked: what was asked, for people.
        where: the service, for people.
        hint: what would have its certificate trusted.
    """
    from urllib3.exceptions import ProxyError

    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        inner = getattr(cause, "original_error", None) or cause.__cause__
        inner = inner or next((x for x in cause.args if isinstance(x, BaseException)), None)
        cause = inner if inner is not cause else None
    if isinstance(cause, ssl.SSLCertVerificationError):
        text = f"cannot {asked}: its certificate is not trusted: {cause.verify_message}"
        return Untrusted(text, hint=hint, where=where)
    if isinstance(cause, ssl.SSLError):
        reason = cause.reason or str(cause)
        return Unreachable(f"cannot {asked}: TLS failed: {reason}", where=where)
    by = " by its proxy" if isinstance(error, ProxyError) else ""
    reason = (cause.strerror if isinstance(cause, OSError) else None) or str(cause or error)
    return Unreachable(f"cannot {asked}: no answer{by}: {reason[:300]}", where=where)
