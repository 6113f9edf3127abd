"""The platform of a service of the experiment file, as the head uses it."""

from __future__ import annotations

from typing import Any

from dispatcher.errors import PermanentBackendError
from dispatcher.experiment.plugged import file_platform_of, word_of
from dispatcher.experiment.service import ServiceConfig
from dispatcher.platforms.platform import Platform


def platform_of(service: ServiceConfig) -> Platform[Any]:
    """The platform that this section belongs to.

    Raises:
        PermanentBackendError: it is not installed (any more), or is no platform.
    """
    platform = file_platform_of(service)
    if isinstance(platform, Platform):
        return platform
    raise PermanentBackendError(
        f"the platform {word_of(service)!r} is neither an AgentPlatform nor a BackendPlatform",
        hint="docs/backends.md says what it must be",
        where="trainingService",
    )
