"""The published form of objects as a judge: closed, so that a misspelt field is an error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft4Validator  # type: ignore[import-untyped]

DEFINITIONS = Path(__file__).parent / "definitions.json"

_CORE, _META = "io.k8s.api.core.v1", "io.k8s.apimachinery.pkg.apis.meta.v1"

#: Definitions by kind.
OF_KIND = {
    "Job": "io.k8s.api.batch.v1.Job",
    "JobList": "io.k8s.api.batch.v1.JobList",
    **{
        kind: f"{_CORE}.{kind}"
        for each in ("Pod", "Secret", "ConfigMap", "Event")
        for kind in (each, f"{each}List")
    },
    "PersistentVolumeClaim": f"{_CORE}.PersistentVolumeClaim",
    "SelfSubjectAccessReview": "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
    "Status": f"{_META}.Status",
    "DeleteOptions": f"{_META}.DeleteOptions",
    "Info": "io.k8s.apimachinery.pkg.version.Info",
    "WatchEvent": f"{_META}.WatchEvent",
    "ObjectMeta": f"{_META}.ObjectMeta",
    "ListMeta": f"{_META}.ListMeta",
    "APIGroup": f"{_META}.APIGroup",
    "APIResourceList": f"{_META}.APIResourceList",
}

#: Fields that came after 1.20, by the definition that has them: dropped without a word there.
AFTER_1_20 = {
    "io.k8s.api.batch.v1.JobSpec": (
        "podFailurePolicy",
        "podReplacementPolicy",
        "suspend",
        "completionMode",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
        "managedBy",
        "successPolicy",
    )
}


def complaints(kind: str, document: object) -> list[str]:
    """What the contract has against a document of that kind."""
    found = _validator(kind).iter_errors(document)
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in found]


def pruned(
    kind: str, document: Mapping[str, Any], *, old: bool
) -> tuple[dict[str, Any], list[str]]:
    """A document without the fields that the server does not know, and their paths."""
    dropped: list[str] = []
    result = _prune({"$ref": f"#/definitions/{OF_KIND[kind]}"}, document, "", dropped, old)
    assert isinstance(result, dict)
    return result, dropped


@cache
def _definitions() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(DEFINITIONS.read_text())
    return read


@cache
def _validator(kind: str) -> Draft4Validator:
    closed = {name: _closed(each) for name, each in _definitions().items()}
    return Draft4Validator({"$ref": f"#/definitions/{OF_KIND[kind]}", "definitions": closed})


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: _closed(value) for key, value in schema.items()}
    if result.get("format") == "int-or-string":
        return {"type": ["integer", "string"]}
    if isinstance(result.get("properties"), dict):
        result.setdefault("additionalProperties", False)
    return result


def _prune(schema: Any, value: Any, path: str, dropped: list[str], old: bool) -> Any:
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    if name:
        schema = _definitions()[name]
    if isinstance(value, list):
        inner = schema.get("items", {})
        each = enumerate(value)
        return [_prune(inner, x, f"{path}[{i}]", dropped, old) for i, x in each]
    properties = schema.get("properties")
    if not isinstance(value, dict):
        return value
    if properties is None:
        inner = schema.get("additionalProperties")
        if not isinstance(inner, dict):
            return value
        return {k: _prune(inner, v, f"{path}.{k}", dropped, old) for k, v in value.items()}
    result = {}
    for key, inner in value.items():
        place = f"{path}.{key}".lstrip(".")
        if key not in properties:
            dropped.append(place)
        elif not (old and key in AFTER_1_20.get(name, ())):
            result[key] = _prune(properties[key], inner, place, dropped, old)
    return result
