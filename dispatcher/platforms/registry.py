"""The platform of a service of the experiment file: one of ours, or one that is plugged in."""

from __future__ import annotations

from typing import Any

from dispatcher.errors import PermanentBackendError
from dispatcher.experiment.plugged import Unusable, plugged, word_of
from dispatcher.experiment.service import ServiceConfig
from dispatcher.platforms.local import LOCAL
from dispatcher.platforms.platform import Platform
from dispatcher.platforms.ssh import SSH

_OURS: tuple[Platform[Any], ...] = (LOCAL, SSH)


def platform_of(service: ServiceConfig) -> Platform[Any]:
    """The platform that this section belongs to.

    Raises:
        PermanentBackendError: it is not installed (any more), or is no platform.
    """
    platform: object = next((each for each in _OURS if type(service) is each.section), None)
    if platform is None:
        word = word_of(service)
        platform = plugged(word)
        if isinstance(platform, Unusable):
            raise PermanentBackendError(platform.text, hint=platform.hint, where="trainingService")
        if isinstance(platform, type):  # the entry point may name the class as well
            try:
                platform = platform()
            except Exception as error:
                raise PermanentBackendError(
                    f"the platform {word!r} cannot be made: {type(error).__name__}: {error}",
                    where="trainingService",
                ) from error
    if isinstance(platform, Platform):
        return platform
    raise PermanentBackendError(
        f"the platform {word_of(service)!r} is neither an AgentPlatform nor a BackendPlatform",
        hint="docs/backends.md says what it must be",
        where="trainingService",
    )
