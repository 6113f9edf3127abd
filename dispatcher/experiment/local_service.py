"""The training service ``local``: trials as processes of this machine."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from dispatcher.experiment.service import ServiceConfig, is_remote


class LocalServiceConfig(ServiceConfig):
    """Run trials on this machine, below an agent process of the experiment."""

    platform: Annotated[Literal["local"], Field(description="Where trials run: `local`.")] = "local"

    @classmethod
    def fits(cls, value: Any) -> bool:
        """Whether a section of the file is meant for this class."""
        return not is_remote(value)
