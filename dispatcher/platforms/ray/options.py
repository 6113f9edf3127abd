"""Options of Ray that a file may name beside our keys, and those that are ours. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

#: Options of an actor that are written otherwise, and why, or what says the same in the file.
_OURS = {
    "concurrency_groups": "bequeath writes it itself",
    "get_if_exists": "bequeath writes it itself",
    "lifetime": "bequeath writes it itself",
    "max_concurrency": "bequeath writes it itself",
    "max_restarts": "no actor of ours is started twice; bequeath asks for another one itself",
    "max_task_retries": "bequeath writes it itself",
    "memory": "write 'memory' below 'trainingService'",
    "name": "bequeath writes it itself",
    "namespace": "bequeath writes it itself",
    "num_cpus": "write 'cpus'",
    "num_gpus": "write 'gpus'",
    "resources": "write 'actorResources'",
    "runtime_env": "write 'runtimeEnv'",
}

#: Options that say on which node an actor is to be.
PLACES_ONE = frozenset({
    "fallback_strategy", "label_selector", "placement_group", "placement_group_bundle_index",
    "placement_group_capture_child_tasks", "scheduling_strategy",
})  # fmt: skip


def read_plain(value: object) -> Any:
    """Read what JSON can carry, with texts for names. Raises ``ValueError``."""
    if isinstance(value, Mapping):
        return {_name(name): read_plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [read_plain(each) for each in value]
    endless = isinstance(value, float) and not math.isfinite(value)
    if value is None or (isinstance(value, (str, int, float)) and not endless):
        return value
    raise ValueError(f"has {value!r}, which JSON cannot carry")


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise ValueError(f"has the name {name!r}, which must be a text")
    return name


def _read_mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"must be names with their values, not {value!r}")
    return dict(read_plain(value))


def _read_options(value: object) -> dict[str, Any]:
    options = _read_mapping(value)
    for name in options:
        if name in _OURS:
            raise ValueError(f"has {name!r}: {_OURS[name]}")
        if not name.isidentifier():
            raise ValueError(f"has {name!r}, which is no option of an actor")
    return options


_SCHEMA = WithJsonSchema({"type": "object"})

ActorOptions = Annotated[dict[str, Any], PlainValidator(_read_options), _SCHEMA]
"""Options of an actor by name, as ``Actor.options(...)`` of Ray takes them."""

RuntimeEnv = Annotated[dict[str, Any], PlainValidator(_read_mapping), _SCHEMA]
"""A runtime environment of Ray, as it stands in Ray's documentation."""
