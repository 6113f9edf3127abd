"""The description of all routes by OpenAPI 3.1, made from the table. Pure; nothing here serves."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from dispatcher.operations.faults import FAULTS, Failure
from dispatcher.operations.operation import Operation, Scope, Subject
from dispatcher.operations.table import OPERATIONS

#: The version of all routes: it grows, and nothing of it goes.
PREFIX: Final = "/api/v1"

_REFERENCE: Final = "#/components/schemas/{name}"

#: Answers that are no JSON.
_MEDIA: Final[dict[Any, str]] = {bytes: "image/png", str: "text/csv"}

_SUBJECTS: Final = {
    "experiment": {
        "description": "The experiment's id, the beginning of one, or its name.",
        "schema": {"type": "string", "minLength": 1},
    },
    "trial": {
        "description": "The trial's number.",
        "schema": {"type": "integer", "minimum": 0},
    },
}


def document(version: str) -> dict[str, Any]:
    """Return the description as plain values for JSON.

    Args:
        version: of bequeath.
    """
    rows = [each for each in OPERATIONS.values() if each.route]
    shapes = [each.arguments for each in rows] + [
        each.answer for each in rows if each.answer not in _MEDIA
    ]
    schemas, components = msgspec.json.schema_components(
        [*shapes, Failure], ref_template=_REFERENCE
    )
    of_arguments = {id(row): schemas[place] for place, row in enumerate(rows)}
    of_answers = iter(schemas[len(rows) :])
    paths: dict[str, dict[str, Any]] = {}
    for row in rows:
        answer = {"type": "string"} if row.answer in _MEDIA else next(of_answers)
        fields = components[of_arguments[id(row)]["$ref"].rpartition("/")[2]]
        paths.setdefault(PREFIX + row.path, {})[row.method.lower()] = _described(
            row, fields, answer
        )
    inline = {_name(row) for row in rows} - {_name(row) for row in rows if _has_body(row)}
    kept = {name: one for name, one in components.items() if name not in inline}
    described = {
        "openapi": "3.1.0",
        "info": {
            "title": "bequeath",
            "version": version,
            "description": "What one can ask of experiments and do to them. Times are seconds "
            "since the epoch (UTC), durations seconds, sizes bytes. Answers may get more keys.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": subject.value} for subject in Subject],
        "paths": paths,
        "components": {
            "schemas": kept,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "bequeath"},
            },
        },
        "security": [{"token": []}, {"cookie": []}],
    }
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(described))
    return plain


def _name(row: Operation[Any, Any]) -> str:
    """Return the name of the arguments' schema."""
    return row.arguments.__name__


def _has_body(row: Operation[Any, Any]) -> bool:
    """Whether its arguments are a body; else they are of path and query."""
    return row.method in ("POST", "PUT", "PATCH") and bool(row.arguments.__struct_fields__)


def _described(
    row: Operation[Any, Any], fields: dict[str, Any], answer: dict[str, Any]
) -> dict[str, Any]:
    in_path = re.findall(r"\{(\w+)\}", row.path)
    properties: dict[str, Any] = fields.get("properties", {})
    in_query = () if _has_body(row) else properties
    needed = set(fields.get("required", ()))
    described: dict[str, Any] = {
        "operationId": row.ident,
        "summary": row.summary,
        "tags": [row.subject.value],
        "parameters": [
            *(_in_path(name, properties) for name in in_path),
            *(
                _parameter("query", name, properties[name], needed=name in needed)
                for name in in_query
                if name not in in_path
            ),
        ],
        "responses": {"200": _answer(row, answer)} | _problems(row),
        "x-scope": row.scope.value,
        "x-repeatable": row.repeatable,
        "x-commands": [f"bequeath {verb}" for verb in row.verbs],
    }
    if _has_body(row):
        schema = {"$ref": _REFERENCE.format(name=_name(row))}
        content = {"application/json": {"schema": schema}}
        described["requestBody"] = {"required": bool(needed), "content": content}
    return described


def _in_path(name: str, properties: dict[str, Any]) -> dict[str, Any]:
    if name in _SUBJECTS:
        return {"name": name, "in": "path", "required": True, **_SUBJECTS[name]}
    return _parameter("path", name, properties[name], needed=True)


def _parameter(place: str, name: str, schema: dict[str, Any], *, needed: bool) -> dict[str, Any]:
    plain = {key: value for key, value in schema.items() if key != "description"}
    if place == "path":
        plain.pop("default", None)
    return {
        "name": name,
        "in": place,
        "required": needed,
        "description": schema.get("description", name),
        "schema": plain,
    }


def _answer(row: Operation[Any, Any], schema: dict[str, Any]) -> dict[str, Any]:
    media = _MEDIA.get(row.answer, "application/json")
    return {"description": row.summary, "content": {media: {"schema": schema}}}


def _problems(row: Operation[Any, Any]) -> dict[str, Any]:
    """Return the errors by status; those of a whole machine name no experiment."""
    by_status: dict[int, list[str]] = {401: ["no token, or one that does not count"]}
    if row.scope is Scope.CHANGE:
        by_status[403] = ["the token may only read"]
    for each in _kinds(row):
        by_status.setdefault(each.status, []).append(f"`{each.kind}`: {each.meaning}")
    content = {"application/json": {"schema": {"$ref": _REFERENCE.format(name="Failure")}}}
    return {
        str(status): {"description": "; ".join(texts), "content": content}
        for status, texts in sorted(by_status.items())
    }


def _kinds(row: Operation[Any, Any]) -> Iterable[Any]:
    for each in FAULTS.values():
        if each.kind == "no-trial" and row.subject is Subject.MACHINE:
            continue
        if each.kind == "no-experiment" and row.subject is Subject.MACHINE:
            continue
        if each.kind == "condition" and "where" not in row.arguments.__struct_fields__:
            continue
        yield each
