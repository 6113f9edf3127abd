"""The resolved experiment as JSON, kept in its folder and read back exactly.

References to secrets (``env:NAME``, ``file:PATH``) are stored as references.
"""

from __future__ import annotations

import json
import os
from typing import Any

from pydantic import ValidationError

from dispatcher.errors import ExperimentFileError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.sections import MOST_PARAMETERS_BYTES
from dispatcher.experiment.shown import shown

VERSION = 1
"""Raised when a reader of an older version could misread what is written."""


def to_json(config: ExperimentConfig) -> str:
    """Return the configuration as JSON; :func:`from_json` gives back an equal one."""
    body = {"snapshotVersion": VERSION, "experiment": config.model_dump(by_alias=True)}
    return json.dumps(body, indent=2, default=os.fspath, allow_nan=False) + "\n"


def to_shared(config: ExperimentConfig) -> str:
    """Return the configuration as other users may see it, secrets masked; empty if none may."""
    if config.share_with == "nobody":
        return ""
    return json.dumps(shown(json.loads(to_json(config))), indent=2, allow_nan=False) + "\n"


def to_shown(config: ExperimentConfig) -> Any:
    """Return the configuration as it may be shown, with secrets masked."""
    return shown(json.loads(to_json(config))["experiment"])


def read_shown(text: str, origin: str) -> dict[str, Any]:
    """Read a record as it may be shown, with secrets masked; it need not be a valid one.

    Raises:
        ExperimentFileError: it is no such record.
    """
    try:
        settings = json.loads(text)["experiment"]
        if isinstance(settings, dict):
            return {str(key): value for key, value in shown(settings).items()}
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise ExperimentFileError("not the record of an experiment", where=origin)


def from_json(text: str, origin: str = "snapshot") -> ExperimentConfig:
    """Read what :func:`to_json` wrote. The disk is not looked at.

    Raises:
        ExperimentFileError: not such a text, or one of a newer version.
    """
    try:
        body = json.loads(text)
        version, values = body["snapshotVersion"], body["experiment"]
    except (json.JSONDecodeError, KeyError, TypeError, RecursionError) as error:
        raise ExperimentFileError(
            f"not the record of an experiment: {error}", where=origin
        ) from error
    if version != VERSION:
        raise ExperimentFileError(
            f"the record of an experiment has version {version}, this bequeath reads {VERSION}",
            hint="use the version of bequeath that started the experiment, or a newer one",
            where=origin,
        )
    channel = values.get("channel") if isinstance(values, dict) else None
    if isinstance(channel, dict):  # 0.1.0 asked for such a host once only
        channel.setdefault("beyondThisMachine", True)
    limits = values.get("limits") if isinstance(values, dict) else None
    if isinstance(limits, dict) and isinstance(limits.get("maxParametersSize"), int):
        # 0.1.0 took any size, and could not send what was larger.
        limits["maxParametersSize"] = min(limits["maxParametersSize"], MOST_PARAMETERS_BYTES)
    if isinstance(values, dict):  # begun when all versions stayed: removing any needs consent
        values.setdefault("sharedStores", {"keep": "all"})
    try:
        return ExperimentConfig.model_validate(values)
    except ValidationError as error:
        # Without the value, which may be a secret.
        lines = [
            f"{'.'.join(map(str, each['loc']))}: {each['msg'].removeprefix('Value error, ')}"
            for each in error.errors()
        ]
        unknown = any(each["type"] == "extra_forbidden" for each in error.errors())
        raise ExperimentFileError(
            f"the record of an experiment does not hold: {'; '.join(lines)}",
            hint="a newer bequeath may have written it: upgrade this one" if unknown else "",
            where=origin,
        ) from None
