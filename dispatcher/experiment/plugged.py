"""Platforms, found by entry point: ours, and those of other packages, checked before they are used.

A package names an object in the entry point group :data:`GROUP`, under the name that is written
as ``platform``. Of that object this room reads what :class:`FilePlatform` has: the class of its
section of the file, and what can be asked with the file alone.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint
from typing import Any, NamedTuple, cast

from dispatcher.errors import InternalError, PermanentBackendError, UserError
from dispatcher.experiment.entry_points import brought_by, entries_of, is_ours
from dispatcher.experiment.fields import fold_word
from dispatcher.experiment.foreign import ForeignObject
from dispatcher.experiment.platform_base import FilePlatform
from dispatcher.experiment.service import ServiceConfig
from tuners.plain_json import JsonPath

GROUP = "bequeath.backends"

PROTOCOL = 2
"""Version of the protocol of such an object (``dispatcher.platforms.protocol``). It grows when an
object that was written for the version before would not work any more, or might not."""

_MEMBERS: Mapping[int, Collection[str] | None] = {
    1: ("backend", "files", "protocol", "reach", "reach_of", "section", "visit"),
    2: None,
}
"""Versions that are read, and what objects of each may have: all (None), or these names. Others
that an object of theirs has are its own affair, whatever we call so by now."""

USUAL = "local"
"""The platform of a section that names none."""

_log = logging.getLogger("bequeath.platforms")


class Unusable(NamedTuple):
    """The reason why a platform cannot be used, and what would help."""

    text: str
    hint: str = ""


class Installed(NamedTuple):
    """A platform that a distribution brings, or another word for it (``is_alias``)."""

    entry: EntryPoint
    by: str
    ours: bool

    @property
    def is_alias(self) -> bool:
        """Whether it is a second word for a platform of ours: its folder has another name."""
        return self.ours and self.entry.module.rpartition(".")[2] != self.entry.name


def installed() -> Mapping[str, Installed]:
    """Return all platforms, by the words that name them, folded. Ours come first, the usual one
    before all.

    Raises:
        UserError: our own are not among them: the installation is older than the code.
    """
    return _installed(tuple(sys.path))


@lru_cache(maxsize=16)
def _installed(path: tuple[str, ...]) -> Mapping[str, Installed]:
    every = [Installed(each, brought_by(each), is_ours(each)) for each in entries_of(GROUP)]
    every.sort(key=lambda x: (not x.ours, x.entry.name != USUAL, x.is_alias, x.entry.name))
    if not any(each.ours and each.entry.name == USUAL for each in every):
        raise UserError(
            "this installation does not name its own platforms",
            hint="install bequeath again: 'pip install -e .' in a checkout, or its wheel",
        )
    by_word: dict[str, Installed] = {}
    for each in every:
        before = by_word.get(fold_word(each.entry.name))
        if before is not None and before.ours:
            text = "%r brings a platform %r, which is a name of ours: it is left out"
            _log.warning(text, each.by, each.entry.name)
        else:
            by_word[fold_word(each.entry.name)] = each
    return by_word


def our_words() -> list[str]:
    """Return the words for our own platforms, which no other package can take."""
    return [word for word, each in installed().items() if each.ours]


def our_sections() -> list[type[ServiceConfig]]:
    """Return the sections of our own platforms, whatever else is installed."""
    platforms = [platform_named(word) for word in our_words()]
    sections = [each.section for each in platforms if not isinstance(each, Unusable)]
    return list(dict.fromkeys(sections))


def section_class(section: Any) -> type[ServiceConfig]:
    """Return the class that reads a section of the file; the usual one if the file names no
    platform, or one that cannot be used."""
    for word in (word_of(section) or USUAL, USUAL):
        platform = platform_named(word)
        if not isinstance(platform, Unusable):
            return platform.section
    raise InternalError(f"the platform {USUAL!r} is not installed")


def word_of(section: Any) -> str:
    """Return the platform that a section of the file names; empty for none."""
    named = isinstance(section, Mapping)
    word = section.get("platform") if named else getattr(section, "platform", None)
    return word if isinstance(word, str) else ""


def unusable_platforms(values: Mapping[str, Any]) -> list[tuple[JsonPath, Unusable]]:
    """Return where in a file, and why, platforms cannot be used.

    Args:
        values: the keys and values of the whole file.
    """
    found: list[tuple[JsonPath, Unusable]] = []
    for key, service in values.items():
        if fold_word(str(key)) != "trainingservice":
            continue
        listed = enumerate(service) if isinstance(service, list) else None
        places = [((key, i), each) for i, each in listed] if listed else [((key,), service)]
        for at, each in places:
            word = word_of(each)
            platform = platform_named(word) if word else None
            if isinstance(platform, Unusable):
                found.append(((*at, "platform"), platform))
    return found


def platform_named(word: str) -> FilePlatform[Any] | Unusable:
    """Return the platform of that name; one of another package is a :class:`ForeignObject`.

    Imports the package that brings it.
    """
    there = installed()
    brought = there.get(fold_word(word))
    if brought is None:
        names = ", ".join(each.entry.name for each in there.values() if not each.is_alias)
        hint = f"installed are {names}; others come with packages that bring them"
        return Unusable(f"the platform {word!r} is not installed", hint)
    try:
        platform = brought.entry.load()
        return platform if brought.ours else _checked(platform, word, brought.by)
    except Exception as error:  # noqa: BLE001 - somebody else's code, which harms itself only
        _log.warning("the platform %s cannot be loaded", word, exc_info=True)
        problem = f"{type(error).__name__}: {error}"
        return Unusable(
            f"the platform {word!r} cannot be loaded: {problem}", f"it is brought by {brought.by!r}"
        )


def _checked(platform: Any, word: str, by: str) -> FilePlatform[Any] | Unusable:
    version: Any = getattr(platform, "protocol", None)
    if version not in _MEMBERS:
        return Unusable(
            f"the platform {word!r} was written for version {version} of the protocol of "
            f"backends, and this bequeath has version {PROTOCOL}",
            f"install versions of {by!r} and bequeath that fit together",
        )
    section = getattr(platform, "section", None)
    if not (isinstance(section, type) and issubclass(section, ServiceConfig)):
        text = f"the platform {word!r} has no section: its 'section' must be a ServiceConfig"
        return Unusable(text, f"report it to the authors of {by!r}")
    section.model_rebuild()  # is put off; what is wrong with it is this platform's fault
    if isinstance(platform, type):  # the entry point may name the class as well
        platform = _made(platform)
    if not isinstance(platform, FilePlatform):
        return Unusable(
            f"the platform {word!r} is no Platform",
            "docs/backends.md says what it must be",
        )
    title, own = f"the platform {word!r}", _MEMBERS[version]
    foreign = ForeignObject(platform, title, by, where="trainingService", own=own)
    return cast("FilePlatform[Any]", foreign)


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
