"""Objects of other packages, behind something that says whose fault it is if they fail."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator, Iterator
from functools import partial
from typing import Any

from dispatcher.errors import DispatcherError, PermanentBackendError

_log = logging.getLogger("bequeath.platforms")

#: Members whose results are objects of that package, too.
_MAKERS = ("host", "of", "sink_for", "worker_files")


class ForeignObject:
    """An object of another package: all of its members, but that whatever they raise is one of our
    errors, which names the package. Whoever calls them need not know that somebody else wrote them.

    Args:
        inner: the object.
        title: what it is, for the beginning of a sentence.
        by: the distribution that brings it.
        where: the key of the experiment file that it stands at.
        own: names that it may have members of its own under; those of any others are what our base
            class has, which the object was written before. None: any.
    """

    def __init__(
        self,
        inner: Any,
        title: str,
        by: str,
        *,
        where: str = "",
        own: Collection[str] | None = None,
    ) -> None:
        self._inner = inner
        self._title = title
        self._by = by
        self._where = where
        self._own = own

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        known = self._own is None or name in self._own
        member = self._asked(name, getattr, self._inner if known else _as_ours(self._inner), name)
        is_method = callable(member) and not isinstance(member, type)
        return partial(self._called, name, member) if is_method else member

    def _called(self, name: str, member: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
        answer = self._asked(name, member, *args, **named)
        if isinstance(answer, Generator):
            return self._yielded(name, answer)
        if name not in _MAKERS or answer is None:
            return answer
        return ForeignObject(answer, self._title, self._by, where=self._where)

    def _yielded(self, name: str, answers: Iterator[Any]) -> Iterator[Any]:
        """Yield what a generator of theirs yields: it runs only now, and may fail only now."""
        end = object()
        while (each := self._asked(name, next, answers, end)) is not end:
            yield each

    def _asked(self, name: str, ask: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
        try:
            return ask(*args, **named)
        except DispatcherError:
            raise
        except Exception as error:
            _log.info("%s of %r fails at %r", self._title, self._by, name, exc_info=True)
            raise PermanentBackendError(
                f"{self._title} fails at {name!r}: {type(error).__name__}: {error}",
                hint=f"report it to the authors of {self._by!r}",
                where=self._where,
            ) from error


def _as_ours(inner: Any) -> Any:
    """The object as its first base class of ours sees it."""
    classes = type(inner).__mro__
    theirs = [each for each in classes if not each.__module__.startswith("dispatcher.")]
    first = next(i for i, each in enumerate(classes) if each not in theirs)
    return super(classes[first - 1], inner) if first else inner
