"""Platforms, found by entry point: ours, and those of other packages, checked before they are used.

A package names an object in the entry point group :data:`GROUP`, under the name that is written
as ``platform``. Of that object this room reads what :class:`FilePlatform` has: the class of its
section of the file, and what can be asked with the file alone.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint
from typing import Any, NamedTuple

from dispatcher.errors import PermanentBackendError, UserError
from dispatcher.experiment.entry_points import entries_of
from dispatcher.experiment.fields import fold_word
from dispatcher.experiment.platform_base import FilePlatform
from dispatcher.experiment.service import ServiceConfig

GROUP = "bequeath.backends"

PROTOCOL = 1
"""Version of the protocol of such an object (``dispatcher.platforms.protocol``). It grows when an
object that was written for the version before would not work any more."""

USUAL = "local"
"""The platform of a section that names none."""

_OURS = "dispatcher.platforms."
"""Where the objects of our own platforms are: what they are called, no other package can take."""

_log = logging.getLogger("bequeath.platforms")


class Unusable(NamedTuple):
    """The reason why a platform cannot be used, and what would help."""

    text: str
    hint: str = ""


def installed() -> Mapping[str, EntryPoint]:
    """Return all platforms, by the words that name them, folded. Ours come first.

    Raises:
        UserError: our own are not among them: the installation is older than the code.
    """
    return _installed(tuple(sys.path))


@lru_cache(maxsize=16)
def _installed(path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    entries = sorted(entries_of(GROUP), key=lambda each: (_is_alias(each), each.name))
    ours = {fold_word(each.name): each for each in entries if _is_ours(each)}
    if USUAL not in ours:
        raise UserError(
            "this installation does not name its own platforms",
            hint="install bequeath again: 'pip install -e .' in a checkout, or its wheel",
        )
    theirs: dict[str, EntryPoint] = {}
    for each in entries:
        if _is_ours(each):
            continue
        if fold_word(each.name) in ours:
            _log.warning("%s brings a platform %r, which is a name of ours", each.value, each.name)
        else:
            theirs[fold_word(each.name)] = each
    return ours | theirs


def _is_ours(entry: EntryPoint) -> bool:
    return entry.value.startswith(_OURS)


def _is_alias(entry: EntryPoint) -> bool:
    """Whether it is a second word for a platform of ours: its folder has another name."""
    return _is_ours(entry) and entry.module.rpartition(".")[2] != entry.name


def our_words() -> list[str]:
    """Return the words for our own platforms, which no other package can take."""
    return [word for word, each in installed().items() if _is_ours(each)]


def our_sections() -> list[type[ServiceConfig]]:
    """Return the sections of our own platforms, whatever else is installed."""
    platforms = [platform_named(word) for word in our_words()]
    sections = [each.section for each in platforms if isinstance(each, FilePlatform)]
    return list(dict.fromkeys(sections))


def section_class(section: Any) -> type[ServiceConfig]:
    """Return the class that reads a section of the file; the usual one if the file names no
    platform, or one that cannot be used."""
    platform = platform_named(word_of(section) or USUAL)
    return our_sections()[0] if isinstance(platform, Unusable) else platform.section


def word_of(section: Any) -> str:
    """Return the platform that a section of the file names; empty for none."""
    named = isinstance(section, Mapping)
    word = section.get("platform") if named else getattr(section, "platform", None)
    return word if isinstance(word, str) else ""


def platform_named(word: str) -> FilePlatform[Any] | Unusable:
    """Return the platform of that name. Imports the package that brings it."""
    there = installed()
    entry = there.get(fold_word(word))
    if entry is None:
        names = ", ".join(each.name for each in there.values() if not _is_alias(each))
        hint = f"installed are {names}; others come with packages that bring them"
        return Unusable(f"the platform {word!r} is not installed", hint)
    try:
        platform = entry.load()
    except Exception as error:  # noqa: BLE001 - somebody else's code, which harms itself only
        _log.warning("the platform %s cannot be loaded", word, exc_info=True)
        problem = f"{type(error).__name__}: {error}"
        return Unusable(
            f"the platform {word!r} cannot be loaded: {problem}", f"it is brought by {_by(entry)!r}"
        )
    return _checked(platform, word, entry)


def _by(entry: EntryPoint) -> str:
    """The distribution that brings it. Read from its metadata each time, so only for errors."""
    return entry.dist.name if entry.dist is not None else entry.value


def _checked(platform: Any, word: str, entry: EntryPoint) -> FilePlatform[Any] | Unusable:
    version = getattr(platform, "protocol", None)
    if version != PROTOCOL:
        return Unusable(
            f"the platform {word!r} was written for version {version} of the protocol of "
            f"backends, and this bequeath has version {PROTOCOL}",
            f"install versions of {_by(entry)!r} and bequeath that fit together",
        )
    section = getattr(platform, "section", None)
    if not (isinstance(section, type) and issubclass(section, ServiceConfig)):
        text = f"the platform {word!r} has no section: its 'section' must be a ServiceConfig"
        return Unusable(text, f"report it to the authors of {_by(entry)!r}")
    if isinstance(platform, type):  # the entry point may name the class as well
        try:
            platform = _made(platform)
        except Exception as error:  # noqa: BLE001 - as above
            problem = f"{type(error).__name__}: {error}"
            return Unusable(f"the platform {word!r} cannot be made: {problem}")
    if not isinstance(platform, FilePlatform):
        return Unusable(
            f"the platform {word!r} is neither an AgentPlatform nor a BackendPlatform",
            "docs/backends.md says what it must be",
        )
    return platform


@lru_cache(maxsize=64)
def _made(platform: type[Any]) -> Any:
    return platform()


def file_platform_of(section: ServiceConfig) -> FilePlatform[Any]:
    """Return the platform of a section that has been read.

    Raises:
        PermanentBackendError: it is not installed (any more), or is no platform.
    """
    platform = platform_named(word_of(section) or USUAL)
    if isinstance(platform, Unusable):
        raise PermanentBackendError(platform.text, hint=platform.hint, where="trainingService")
    return platform
