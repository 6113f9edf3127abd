"""Dialects: files, scripts and code written for another framework, found by entry point.

A package names an object in the entry point group :data:`GROUP`. Reading an experiment file,
copying its code and running a script ask it by :class:`Dialect`, and know no framework by name.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from dispatcher.errors import PermanentBackendError, UserError
from dispatcher.experiment.draft import Draft
from dispatcher.experiment.entry_points import brought_by, entries_of, is_ours
from dispatcher.experiment.foreign import ForeignObject

GROUP = "bequeath.dialects"

T = TypeVar("T")

_log = logging.getLogger("bequeath.dialects")


class Dialect(Protocol):
    """Files, scripts and code written for another framework.

    Attributes:
        name: the value of ``compatibility`` under which its code runs.
        title: the framework's own name, for sentences.
        annotation_hint: what to do if code has no annotation that could be found.
        tuner_adapter: ``module:object`` of the :class:`dispatcher.tuner_host.adapter.TunerAdapter`
            of its tuners; empty for a dialect of files, which has no code of its own.
    """

    name: str
    title: str
    annotation_hint: str
    tuner_adapter: str

    def version_of(self, values: Mapping[str, Any], folder: Path | None) -> str:
        """Return the version of the dialect that a file is written in; empty if in none.

        Args:
            values: as read, keys as spelt.
            folder: the file's; None: there is no file, and no code is looked at.
        """

    def translate(self, values: dict[str, Any], version: str, origin: str) -> Draft:
        """Turn the values of a file into ours.

        Args:
            values: as read, keys as spelt.
            version: that of :meth:`version_of`.
            origin: absolute path of the file, for references to secrets in it.
        """

    def native_text(self, draft: Draft, file: str, changed: Mapping[str, Any]) -> str:
        """Return a translated file under our keys, as text with the reason for each.

        Args:
            draft: of :meth:`translate`.
            file: what to call the original.
            changed: top-level values to write in place of the draft's; None leaves a key out.
        """

    def hint(self, section: str, key: str) -> str:
        """Return what to write instead of a key of the dialect's in one of our files, or ""."""

    def current_space(self, space: dict[str, Any]) -> dict[str, Any]:
        """Return a search space of any release in the form of the newest."""

    def annotated_space(
        self, folder: Path, excluded: tuple[Path, ...], *, flat: bool
    ) -> dict[str, Any]:
        """Return the search space in the annotations of code; empty if there are none.

        Args:
            folder: the code directory.
            excluded: folders below it that are no code.
            flat: in forms that our own tuners search, too.

        Raises:
            DispatcherError: an annotation cannot be honoured.
            OSError: the folder cannot be read.
        """

    def rewrite_annotated(self, folder: Path) -> None:
        """Turn the annotations of a copy of the code into code, in place.

        Raises:
            DispatcherError: an annotation cannot be honoured.
            OSError: a file cannot be read or written.
        """

    def is_imported_by(self, file: Path) -> bool:
        """Whether a file of Python is written for the framework."""

    def run_script(self, file: Path, arguments: Sequence[str]) -> None:
        """Run a script that starts experiments by the framework's API.

        Raises:
            DispatcherError: there is no such file, or the script itself raised something.
        """


class FileDialect:
    """Base of dialects of files alone: those of services, whose programs may be anything."""

    title = ""
    annotation_hint = ""
    tuner_adapter = ""

    def native_text(self, draft: Draft, file: str, changed: Mapping[str, Any]) -> str:
        """See :meth:`Dialect.native_text`."""
        from dispatcher.experiment.draft_text import native_text

        return native_text(draft, file, changed, self.title)

    def hint(self, section: str, key: str) -> str:
        """See :meth:`Dialect.hint`: there is none."""
        return ""

    def current_space(self, space: dict[str, Any]) -> dict[str, Any]:
        """See :meth:`Dialect.current_space`: it has our form."""
        return space

    def annotated_space(
        self, folder: Path, excluded: tuple[Path, ...], *, flat: bool
    ) -> dict[str, Any]:
        """See :meth:`Dialect.annotated_space`: there are no annotations."""
        return {}

    def rewrite_annotated(self, folder: Path) -> None:
        """See :meth:`Dialect.rewrite_annotated`: there are none."""

    def is_imported_by(self, file: Path) -> bool:
        """See :meth:`Dialect.is_imported_by`: nothing is."""
        return False

    def run_script(self, file: Path, arguments: Sequence[str]) -> None:
        """See :meth:`Dialect.run_script`: there are no scripts."""
        raise _missing(f"the script {file}")


def dialects() -> tuple[Dialect, ...]:
    """Return all dialects, ours first; those that cannot be used are left out."""
    return _loaded(tuple(sys.path))


@lru_cache(maxsize=16)
def _loaded(path: tuple[str, ...]) -> tuple[Dialect, ...]:
    entries = entries_of(GROUP)
    if not entries:  # as in a checkout that was installed before there were any
        _log.warning("this installation names no dialects, not even ours: install bequeath again")
    by_name: dict[str, Dialect] = {}
    for each in entries:
        dialect = _load(each)
        if dialect is None:
            continue
        if dialect.name in by_name:
            _log.warning("%r brings a second dialect %r", brought_by(each), dialect.name)
            continue
        title = f"the dialect {dialect.name!r}"
        usable = dialect if is_ours(each) else ForeignObject(dialect, title, brought_by(each))
        by_name[dialect.name] = cast("Dialect", usable)
    return tuple(by_name.values())


def _load(entry: EntryPoint) -> Dialect | None:
    try:
        dialect: Any = entry.load()
        if not (isinstance(dialect.name, str) and callable(dialect.version_of)):
            raise TypeError(f"{entry.value} is no dialect")
    except ModuleNotFoundError as error:
        # Taken out of this installation: a plain experiment needs none of it.
        level = logging.DEBUG if _is_within(entry.module, error.name) else logging.WARNING
        _log.log(level, "the dialect %s is not there: %s", entry.name, error)
    except Exception as error:  # noqa: BLE001 - somebody else's code, which harms itself only
        problem = f"{type(error).__name__}: {error}"
        by = brought_by(entry)
        _log.warning("the dialect %s of %r cannot be loaded: %s", entry.name, by, problem)
    else:
        return cast("Dialect", dialect)
    return None


def first_to_know(ask: Callable[[Dialect], T]) -> tuple[Dialect, T] | None:
    """Return the first dialect whose answer is not empty, and the answer; None if there is none.

    What is asked of every file harms no plain one: a dialect of another package that fails at it is
    named and passed over.
    """
    for dialect in dialects():
        try:
            answer = ask(dialect)
        except PermanentBackendError as error:
            _log.warning("%s; %s", error.message, error.hint)
        else:
            if answer:
                return dialect, answer
    return None


def _is_within(module: str, missing: str | None) -> bool:
    return bool(missing) and f"{module}.".startswith(f"{missing}.")


def dialect_named(name: str) -> Dialect:
    """Return the dialect of a value of ``compatibility``.

    Raises:
        UserError: it is not part of this installation.
    """
    for each in dialects():
        if each.name == name:
            return each
    raise _missing(f"code written for {name!r}")


def first_dialect(purpose: str) -> Dialect:
    """Return the dialect for what no file names one for: scripts, and annotated code.

    Args:
        purpose: what it is needed for, the beginning of the sentence if there is none.

    Raises:
        UserError: no dialect with code of its own is part of this installation.
    """
    for each in dialects():
        if each.tuner_adapter:
            return each
    raise _missing(purpose)


def _missing(purpose: str) -> UserError:
    return UserError(
        f"{purpose} cannot be run: this installation of bequeath has no part that knows it",
        hint="install bequeath again: 'pip install -e .' in a checkout, or its wheel",
    )
