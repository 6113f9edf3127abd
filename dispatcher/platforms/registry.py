"""The platform of a service of the experiment file, as the head uses it."""

from __future__ import annotations

from typing import Any, cast

from dispatcher.experiment.plugged import file_platform_of
from dispatcher.experiment.service import ServiceConfig
from dispatcher.platforms.platform import Platform


def platform_of(service: ServiceConfig) -> Platform[Any]:
    """The platform that this section belongs to: there are no others than whole ones.

    Raises:
        PermanentBackendError: it is not installed (any more), or is no platform.
    """
    return cast("Platform[Any]", file_platform_of(service))
