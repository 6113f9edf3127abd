"""The description of all routes by OpenAPI 3.1: of operations, and those that only a page needs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from dispatcher.operations.openapi import PREFIX, document
from dispatcher.web.route import WebRoute
from dispatcher.web.settings import version

_FAILURE: Final = {"$ref": "#/components/schemas/Failure"}

_IN_PATH: Final[dict[str, dict[str, Any]]] = {
    "experiment": {"type": "string", "minLength": 1},
    "trial": {"type": "integer", "minimum": 0},
    "stream": {"type": "string", "enum": ["stdout", "stderr"]},
    "path": {"type": "string"},
    "share": {"type": "string", "minLength": 1, "maxLength": 60},
}

#: Methods whose arguments come as JSON.
_WITH_BODY: Final = ("POST", "PUT", "PATCH")

_STATUSES: Final = {
    "400": "the request cannot be read",
    "401": "no token, or one that does not count",
    "403": "the token may not do this, or the request comes from elsewhere",
    "404": "there is no such thing",
    "429": "the server has enough to do",
    "503": "it may be tried again",
}


def described(routes: Iterable[WebRoute], cookie: str) -> dict[str, Any]:
    """Return the whole description as plain values.

    Args:
        routes: those beside the operations'.
        cookie: the name of the server's cookie.
    """
    whole = document(version())
    whole["components"]["securitySchemes"]["cookie"]["name"] = cookie
    tags = {each["name"] for each in whole["tags"]}
    if "page" not in tags:
        whole["tags"].append({"name": "page"})
    for route in routes:
        whole["paths"].setdefault(PREFIX + route.path, {})[route.method.lower()] = _one(route)
    return whole


def _one(route: WebRoute) -> dict[str, Any]:
    names = re.findall(r"\{(\w+)\}", route.path)
    words = [word for word in re.split(r"[^a-z.]+", route.path) if word]
    content = {
        media: {"schema": {"type": "object" if media == "application/json" else "string"}}
        for media in route.media
    }
    failure = {"application/json": {"schema": _FAILURE}}
    in_body = route.method in _WITH_BODY
    return {
        "operationId": "-".join([route.method.lower(), *words]).replace(".", "-"),
        "summary": route.summary,
        "tags": ["page"],
        "parameters": [
            *({"name": n, "in": "path", "required": True, "schema": _IN_PATH[n]} for n in names),
            *(() if in_body else _query(route)),
        ],
        **({"requestBody": _body(route)} if in_body else {}),
        "responses": {
            "200": {"description": route.answer or route.summary, "content": content},
            **{code: {"description": text, "content": failure} for code, text in _STATUSES.items()},
        },
        "x-scope": route.scope.value,
    }


def _body(route: WebRoute) -> dict[str, Any]:
    schema = _schema(route)
    return {
        "required": bool(schema.get("required")),
        "content": {"application/json": {"schema": schema}},
    }


def _schema(route: WebRoute) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.schema(route.arguments)["$defs"][route.arguments.__name__]
    return found


def _query(route: WebRoute) -> Iterable[dict[str, Any]]:
    schema = _schema(route)
    for name, one in schema["properties"].items():
        plain = {key: value for key, value in one.items() if key != "description"}
        yield {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "description": one.get("description", name),
            "schema": plain,
        }
