"""Platforms of other packages: found by entry point, and checked before they are used.

A package names an object in the entry point group :data:`GROUP`, under the name that is written
as ``platform``. Of that object this room reads two things: the version of the protocol that it
was written for, and the class of its section of the file.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple, Protocol

from dispatcher.experiment.fields import Section, fold_word
from dispatcher.experiment.service import REMOTE, ServiceConfig

GROUP = "bequeath.backends"

PROTOCOL = 1
"""Version of the protocol of such an object (``dispatcher.platforms.protocol``). It grows when an
object that was written for the version before would not work any more."""

OURS = ("local", *REMOTE)
"""Names that no other package can take."""

_log = logging.getLogger("bequeath.platforms")


class Plugged(Protocol):
    """The part of ``dispatcher.platforms.protocol`` that is read here."""

    protocol: int
    section: type[ServiceConfig]


class Unusable(NamedTuple):
    """The reason why a platform cannot be used, and what would help."""

    text: str
    hint: str = ""


def installed() -> dict[str, EntryPoint]:
    """Return the platforms of other packages, by name. Reads the entry points of all packages."""
    platforms = {each.name: each for each in entry_points(group=GROUP)}
    return {name: each for name, each in sorted(platforms.items()) if fold_word(name) not in OURS}


def word_of(section: Any) -> str:
    """Return the platform that a section of the file names; empty for none."""
    named = isinstance(section, Mapping)
    word = section.get("platform") if named else getattr(section, "platform", None)
    return word if isinstance(word, str) else ""


def plugged(word: str) -> Plugged | Unusable:
    """Return the platform of that name. Imports the package that brings it."""
    there = installed()
    entry = next((each for name, each in there.items() if fold_word(name) == fold_word(word)), None)
    if entry is None:
        names = ", ".join(("local", "ssh", *there))
        hint = f"installed are {names}; others come with packages that bring them"
        return Unusable(f"the platform {word!r} is not installed", hint)
    by = entry.dist.name if entry.dist is not None else entry.value
    try:
        platform = entry.load()
    except Exception as error:  # noqa: BLE001 - somebody else's code, which harms itself only
        _log.warning("the platform %s cannot be loaded", word, exc_info=True)
        problem = f"{type(error).__name__}: {error}"
        return Unusable(
            f"the platform {word!r} cannot be loaded: {problem}", f"it is brought by {by!r}"
        )
    version = getattr(platform, "protocol", None)
    if version != PROTOCOL:
        return Unusable(
            f"the platform {word!r} was written for version {version} of the protocol of "
            f"backends, and this bequeath has version {PROTOCOL}",
            f"install versions of {by!r} and bequeath that fit together",
        )
    section = getattr(platform, "section", None)
    if not (isinstance(section, type) and issubclass(section, ServiceConfig)):
        text = f"the platform {word!r} has no section: its 'section' must be a ServiceConfig"
        return Unusable(text, f"tell the authors of {by!r}")
    return platform  # type: ignore[no-any-return]


def is_plugged(section: Any) -> bool:
    """Whether a section of the file names a platform that is not one of ours."""
    word = word_of(section)
    return bool(word) and fold_word(word) not in OURS


def section_of(section: Any) -> type[Section] | None:
    """Return the class for a section that names another package's platform.

    None if that cannot be used, or the platform is one of ours.
    """
    if not is_plugged(section):
        return None
    platform = plugged(word_of(section))
    return None if isinstance(platform, Unusable) else platform.section
