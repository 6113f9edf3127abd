"""The dashboard of a DLTS cluster. It knows who asks by an address and a password in each request's
own address, which therefore stands in no text of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from dispatcher.errors import BackendError
from dispatcher.http_services.client import HttpAnswer, HttpClient
from dispatcher.http_services.errors import NotLoggedIn, error_of_answer
from dispatcher.platforms.dlts.section import DltsSection
from dispatcher.platforms.http_jobs.credentials import address_of, secret_of


class Dashboard(HttpClient):
    """Requests in the name of one user, see :class:`HttpClient`.

    Args:
        section: says where, and who.
    """

    def __init__(self, section: DltsSection) -> None:
        super().__init__(address_of(section, section.address), error_of=_error_of)
        self._email, self._password = section.email, section.password

    def ask(
        self,
        method: str,
        path: str,
        *,
        asked: str,
        query: Mapping[str, str | int] | None = None,
        **more: Any,
    ) -> HttpAnswer:
        """See :meth:`HttpClient.ask`."""
        password = secret_of(self._password)
        whole = {**(query or {}), "email": self._email, "password": password}
        hidden = (password, quote(password), quote_plus(password))
        return super().ask(method, path, asked=asked, query=whole, secrets=hidden, **more)


def _error_of(status: int, document: object, *, asked: str, **more: Any) -> BackendError:
    """The error that an answer stands for: it answers 403 to those whom it does not know."""
    if status != 403:
        return error_of_answer(status, document, asked=asked, **more)
    text = f"cannot {asked}: the dashboard knows nobody by this 'email' and 'password'"
    hint = "the dashboard shows the password for its API on the page of your account"
    return NotLoggedIn(text, hint=hint, where=more["where"])
