"""Google's services in what is not like most: who asks them, and what their errors mean.

Application default credentials are what Google's own library finds on this machine. It is imported
here alone, and late."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from dispatcher.errors import BackendError, PermanentBackendError
from dispatcher.http_services.errors import (
    Conflict,
    Invalid,
    NotAllowed,
    NotLoggedIn,
    OverQuota,
    Unreachable,
    error_of_answer,
)
from dispatcher.http_services.signing import HttpRequest

#: Our extra that has the library, and what to do without it.
EXTRA = "google"
MISSING = f"pip install 'bequeath[{EXTRA}]', or name a token by 'token'"

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_WHERE = "application default credentials"
_LOG_IN = "`gcloud auth application-default login`"

#: What Google names as the cause of an error, and what to do about it.
_HINTS = {
    "SERVICE_DISABLED": "have its API enabled in the project: `gcloud services enable`",
    "CONSUMER_INVALID": "is 'project' the id of a project?",
    "USER_PROJECT_DENIED": "is 'project' the id of a project, and may you use it?",
    "BILLING_DISABLED": "have billing enabled for the project",
}


class DefaultCredentials:
    """Signs as the one whom this machine is logged in as: by a file that
    ``GOOGLE_APPLICATION_CREDENTIALS`` names, by gcloud, or as the machine's own account. See
    :class:`~dispatcher.http_services.signing.Signer`. Threads: any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._credentials: Any = None
        self._is_stale = False

    def headers(self, request: HttpRequest) -> Mapping[str, str]:
        """See :class:`Signer`. Blocks where a token has to be fetched."""
        try:
            import google.auth
            from google.auth.exceptions import GoogleAuthError
            from google.auth.transport.requests import Request
        except ImportError as error:
            text = f"{_WHERE} need google-auth, which is not installed here"
            raise PermanentBackendError(text, hint=MISSING) from error
        signed: dict[str, str] = {}
        with self._lock:
            try:
                if self._credentials is None:
                    self._credentials, _ = google.auth.default(scopes=[_SCOPE])
                if self._is_stale or not self._credentials.valid:
                    self._credentials.refresh(Request())
                    self._is_stale = False
                self._credentials.apply(signed)
            except (GoogleAuthError, OSError, ValueError) as error:
                raise _error_of(error) from error
        return signed

    def refused(self) -> bool:
        """See :class:`Signer`: another token is fetched."""
        with self._lock:
            was_had, self._is_stale = self._credentials is not None, True
        return was_had


def _error_of(error: Exception) -> BackendError:
    """The error that one of the library stands for. What a server has answered may be in its
    further arguments, and is left out."""
    from google.auth.exceptions import TransportError

    text = " ".join(str(error.args[0] if error.args else error).split())[:300]
    if isinstance(error, TransportError) or getattr(error, "retryable", False):
        return Unreachable(f"no token can be fetched: {text}", where=_WHERE)
    hint = f"{_LOG_IN}, or GOOGLE_APPLICATION_CREDENTIALS=FILE"
    return NotLoggedIn(f"cannot be used: {text}", hint=hint, where=_WHERE)


def error_of_google(
    status: int, document: object, *, asked: str, where: str, retry_after: str | None = None
) -> BackendError:
    """See :func:`~dispatcher.http_services.errors.error_of_answer`, which knows what most services
    mean; here a quota is exceeded by 429, as is a rate, and details say more."""
    usual = error_of_answer(status, document, asked=asked, where=where, retry_after=retry_after)
    fields = document.get("error") if isinstance(document, Mapping) else None
    fields = fields if isinstance(fields, Mapping) else {}
    details = [each for each in fields.get("details") or () if isinstance(each, Mapping)]
    reason = next((str(each["reason"]) for each in details if each.get("reason")), "")
    message = "; ".join([usual.message, *_violations(details)])[:1000]
    word = fields.get("status")
    is_rate = reason == "RATE_LIMIT_EXCEEDED" or retry_after is not None
    if word == "RESOURCE_EXHAUSTED" and not is_rate:
        return OverQuota(message, where=where)
    if word == "ABORTED":
        return Conflict(message, where=where)
    if status == 401:
        hint = f"{_LOG_IN}, or have the token of 'token' renewed"
        return NotLoggedIn(message, hint=hint, where=where)
    if status == 403:
        return NotAllowed(message, hint=_HINTS.get(reason, ""), where=where)
    return Invalid(message, where=where) if isinstance(usual, Invalid) else usual


def _violations(details: list[Mapping[str, Any]]) -> list[str]:
    """The sentences of details about single fields, which the main one may lack."""
    found = [each for one in details for each in one.get("fieldViolations") or ()]
    return [f"{each.get('field', '')}: {each.get('description', '')}" for each in found]
