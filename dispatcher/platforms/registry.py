"""Which platform a service of the experiment file is of: one of ours, or one that is plugged in."""

from __future__ import annotations

from typing import Any

from dispatcher.errors import PermanentBackendError
from dispatcher.experiment.plugged import Unusable, plugged, word_of
from dispatcher.experiment.service import ServiceConfig
from dispatcher.platforms.local import LOCAL_PLATFORM, LocalPlatform
from dispatcher.platforms.platform import AgentPlatform, BackendPlatform, Platform
from dispatcher.platforms.ssh import SSH_PLATFORM

AnyPlatform = LocalPlatform | AgentPlatform[Any] | BackendPlatform[Any]

_OURS: tuple[Platform[Any], ...] = (LOCAL_PLATFORM, SSH_PLATFORM)


def platform_of(service: ServiceConfig) -> AnyPlatform:
    """The platform whose section this is.

    Raises:
        PermanentBackendError: it is not installed (any more), or is no platform.
    """
    found: object = next((each for each in _OURS if type(service) is each.section), None)
    if found is None:
        word = word_of(service)
        found = plugged(word)
        if isinstance(found, Unusable):
            raise PermanentBackendError(found.text, hint=found.hint, where="trainingService")
        if isinstance(found, type):  # the entry point may name the class as well
            try:
                found = found()
            except Exception as error:
                raise PermanentBackendError(
                    f"the platform {word!r} cannot be made: {type(error).__name__}: {error}",
                    where="trainingService",
                ) from error
    if isinstance(found, (LocalPlatform, AgentPlatform, BackendPlatform)):
        return found
    raise PermanentBackendError(
        f"the platform {word_of(service)!r} is neither an AgentPlatform nor a BackendPlatform",
        hint="docs/backends.md says what it must be",
        where="trainingService",
    )
