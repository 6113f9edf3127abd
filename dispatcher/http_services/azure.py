"""Azure Resource Manager, and what the errors of Azure's services mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dispatcher.errors import BackendError
from dispatcher.findings import Finding, Severity
from dispatcher.http_services.azure_tokens import LOG_IN, default_credentials
from dispatcher.http_services.client import HttpAddress, HttpClient
from dispatcher.http_services.credentials import Credentials
from dispatcher.http_services.errors import (
    NotAllowed,
    NotLoggedIn,
    NotThere,
    OverQuota,
    Unreachable,
    code_in,
    error_of_answer,
)
from dispatcher.http_services.signing import TokenSigner

_QUOTA = re.compile(r"quota|OperationNotAllowed.*cores", re.IGNORECASE)

#: What Azure names as the cause of an error, and what to do about it.
_HINTS = {
    "AuthorizationFailed": "have its administrators give you a role for it",
    "InvalidAuthenticationTokenTenant": "the token is of another tenant than the subscription",
    "ExpiredAuthenticationToken": "the token has expired: renew the file of 'token'",
}

Document = Mapping[str, Any]
Keys = tuple[tuple[str | int, ...], ...]


class SubResource(NamedTuple):
    """Something below a resource that is looked at.

    Attributes:
        path: below the resource.
        judge: yields what is found of it, by its properties and the keys of the experiment file
            that are about it.
        keys: these.
    """

    path: str
    judge: Callable[[Document, Keys], Iterable[Finding]]
    keys: Keys


class ResourceManager:
    """Azure Resource Manager, asked for what lies below one resource. Threads: any.

    Args:
        address: its own.
        resource: the id of the resource.
        version: of the interface.
        credentials: say who asks; None: the environment, or this machine.

    Attributes:
        resource: the id of the resource.
        client: asks it.
    """

    def __init__(
        self,
        address: HttpAddress,
        resource: str,
        version: str,
        credentials: Credentials | None = None,
    ) -> None:
        self.resource = resource
        self._version = {"api-version": version}
        if credentials is None:
            credentials = default_credentials(address.server, address.authorities)
        self._signer = TokenSigner(credentials)
        self.client = self.sibling(address)

    def sibling(self, address: HttpAddress) -> HttpClient:
        """The client of another service of Azure that takes the same tokens."""
        return HttpClient(address, self._signer, error_of=error_of_azure)

    def ask(self, method: str, path: str, asked: str, body: object = None) -> Document:
        """Ask for something below the resource; returns the fields of the answer. To be carried out
        twice does no harm to what is asked so.

        Args:
            method: of HTTP.
            path: below the resource.
            asked: what is asked, for people.
            body: of the request; None: it has none.
        """
        return self.client.ask(
            method,
            f"{self.resource}{path}",
            asked=asked,
            query=self._version,
            body=body,
            is_repeatable=True,
        ).fields

    def page(
        self, path: str, asked: str, query: Mapping[str, str | int], link: str = ""
    ) -> tuple[Sequence[Document], str]:
        """A page of a list, and the link to the next one; empty: there is none.

        Args:
            path: below the resource.
            asked: what is asked, for people.
            query: of the first page.
            link: to the page; empty: it is the first.

        Raises:
            Unreachable: there is no page: what is not listed there is not gone.
        """
        first = {**self._version, **query}
        place, parameters = (link, None) if link else (f"{self.resource}{path}", first)
        answer = self.client.ask("GET", place, asked=asked, query=parameters).fields
        rows = answer.get("value")
        if not isinstance(rows, list) or not all(isinstance(each, Mapping) for each in rows):
            raise Unreachable(f"cannot {asked}: the answer is no list", where=self.client.where)
        return rows, str(answer.get("nextLink") or "")

    def findings(self, parts: Iterable[SubResource]) -> Iterator[Finding]:
        """Look at parts of the resource, one after the other; what is not there is a problem."""
        for part in parts:
            try:
                about = self.ask("GET", part.path, f"look at {part.path[1:]}")
            except NotThere as error:
                text, hint = error.message, error.hint
                yield Finding("platform", Severity.PROBLEM, text, hint, part.keys)
            else:
                yield from part.judge(about.get("properties") or {}, part.keys)


def codes_in(error: object) -> Iterator[str]:
    """Yield the codes of an error, and of the errors that have caused it (``innerError``)."""
    while isinstance(error, Mapping):
        if error.get("code"):
            yield str(error["code"])
        error = error.get("innerError")


def error_of_azure(
    status: int, document: object, *, asked: str, where: str, retry_after: str | None = None
) -> BackendError:
    """See :func:`~dispatcher.http_services.errors.error_of_answer`; here details say more, and a
    quota may be a bad request or a conflict."""
    usual = error_of_answer(status, document, asked=asked, where=where, retry_after=retry_after)
    fields = document.get("error") if isinstance(document, Mapping) else None
    fields = fields if isinstance(fields, Mapping) else {}
    details = [x for x in fields.get("details") or () if isinstance(x, Mapping)]
    texts = dict.fromkeys(str(x["message"]) for x in details if x.get("message"))
    message = "; ".join([usual.message, *(x for x in texts if x not in usual.message)])[:1000]
    code = code_in(document)
    if status in (400, 403, 409) and _QUOTA.search(f"{code} {message}"):
        return OverQuota(message, where=where)
    if status == 401:
        return NotLoggedIn(message, hint=_HINTS.get(code, LOG_IN), where=where)
    if status == 403:
        return NotAllowed(message, hint=_HINTS.get(code, ""), where=where)
    return type(usual)(message, where=where) if details and status < 429 else usual
