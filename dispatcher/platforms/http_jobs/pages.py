"""A list that a service gives page by page, where its pages are small."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dispatcher.http_services.errors import Unreachable
from dispatcher.platforms.http_jobs.jobs import ServiceJob

#: Pages at one look, which has other questions as well, and at the first one.
MOST_PAGES, FIRST_PAGES = 1, 1000


class Pages:
    """A list in rounds: all pages at first, later some of them at each look. What stands on the
    others counts as it was.

    Args:
        ask: returns the page of a token, and the token of the next one; empty: the first, and none.
    """

    def __init__(self, ask: Callable[[str], tuple[Sequence[ServiceJob], str]]) -> None:
        self._ask = ask
        self._token = ""
        self._known: dict[str, ServiceJob] = {}
        self._coming: dict[str, ServiceJob] = {}  # of the round that is not over
        self._most = FIRST_PAGES
        self._asked: set[str] = set()  # tokens of this round

    def look(self) -> list[ServiceJob]:
        """Ask for pages; returns all jobs. Raises ``BackendError``, after which a new round
        begins: a service forgets its tokens."""
        for _ in range(self._most):
            token, self._token = self._token, ""
            coming, self._coming = self._coming, {}
            asked, self._asked = {*self._asked, token}, set()
            jobs, token = self._ask(token)
            if token and (token in asked or len(asked) >= FIRST_PAGES):
                raise Unreachable("cannot list jobs: the list comes to no end")
            coming = {**coming, **{job.id: job for job in jobs}}
            if not token:
                self._known, self._most = coming, MOST_PAGES
                break
            self._token, self._coming, self._asked = token, coming, asked
        return list({**self._known, **self._coming}.values())

    def of(self, name: str) -> ServiceJob | None:
        """The first job of that name as it was listed; None: none was."""
        listed = {**self._known, **self._coming}.values()
        mine = (job for job in listed if job.name == name)
        return min(mine, key=lambda job: job.created_at or 0.0, default=None)
