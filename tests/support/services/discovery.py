"""Discovery documents of Google as judges of requests and answers."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

_MOMENT = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$"
_PATTERNS = {
    "int64": r"^-?\d{1,19}$",
    "uint64": r"^\d{1,20}$",
    "google-datetime": _MOMENT,
    "date-time": _MOMENT,
    "google-duration": r"^-?\d+(\.\d{1,9})?s$",
    "google-fieldmask": r"^\w+(\.\w+)*(,\w+(\.\w+)*)*$",
    "byte": r"^[A-Za-z0-9+/_-]*={0,2}$",
}


class Discovery:
    """A document.

    Args:
        file: JSON.
        optional: fields as ``Schema.field`` that their descriptions call required, and that are not
            where they have no meaning.
    """

    def __init__(self, file: Path, optional: Collection[str] = ()) -> None:
        self._document: dict[str, Any] = json.loads(file.read_text("utf-8"))
        self._optional = frozenset(optional)
        base = self._document.get("servicePath", "")
        self._methods = [
            (_shape(f"/{base}{each.get('flatPath') or each['path']}"), each)
            for each in _methods(self._document["resources"])
        ]
        self._validators: dict[tuple[str, bool], Any] = {}
        self._asked = {name: self._schema(name, True) for name in self._document["schemas"]}
        self._answered = {name: self._schema(name, False) for name in self._document["schemas"]}

    def method(self, http_method: str, path: str) -> Mapping[str, Any] | None:
        """The method that a request asks for; None: the contract has none."""
        found = (
            each
            for shape, each in self._methods
            if each["httpMethod"] == http_method and shape.fullmatch(path)
        )
        return next(found, None)

    def request(
        self, http_method: str, path: str, query: Mapping[str, str], body: Any
    ) -> list[str]:
        """What the contract has against a request.

        Args:
            http_method: of the request.
            path: below the service's address.
            query: parameters.
            body: read; None: there is none.
        """
        method = self.method(http_method, path)
        if method is None:
            return [f"{http_method} {path}: there is no such method"]
        given = {**self._document["parameters"], **method.get("parameters", {})}
        known = {name: each for name, each in given.items() if each["location"] == "query"}
        wrong = [f"{name}: there is no such parameter" for name in query if name not in known]
        for name, schema in known.items():
            if name not in query:
                wrong += [f"{name}: is missing"] * _is_required(schema)
                continue
            value: Any = query[name]
            if schema["type"] == "integer":
                value = int(value) if value.lstrip("-").isdecimal() else value
            converted = self._converted(schema, is_request=True)
            errors = Draft202012Validator(converted).iter_errors(value)
            wrong += [f"{name}: {each.message}" for each in errors]
        if "request" not in method:
            return wrong if body is None else [*wrong, "it takes no body"]
        schema = method["request"]
        return [*wrong, *self.complaints(schema["$ref"], body, is_request=True)]

    def answer(self, http_method: str, path: str, body: Any) -> list[str]:
        """What the contract has against an answer of ours that is no error.

        Args:
            http_method: of the request.
            path: of the request.
            body: read.
        """
        method = self.method(http_method, path)
        if method is None:
            return [f"{http_method} {path}: there is no such method"]
        return self.complaints(method["response"]["$ref"], body, is_request=False)

    def complaints(self, name: str, value: Any, *, is_request: bool) -> list[str]:
        """What a schema has against a value.

        Args:
            name: of the schema.
            value: of JSON.
            is_request: whether it is asked for rather than answered.
        """
        if (name, is_request) not in self._validators:
            definitions = self._asked if is_request else self._answered
            whole = {"$ref": f"#/$defs/{name}", "$defs": definitions}
            self._validators[name, is_request] = Draft202012Validator(whole)
        return [
            f"{'.'.join(map(str, each.absolute_path)) or 'body'}: {each.message[:300]}"
            for each in self._validators[name, is_request].iter_errors(value)
        ]

    def _schema(self, name: str, is_request: bool) -> dict[str, Any]:
        schema = self._document["schemas"][name]
        result = self._converted(schema, is_request=is_request)
        if is_request:
            result["required"] = [
                key
                for key, each in schema.get("properties", {}).items()
                if _is_required(each) and f"{name}.{key}" not in self._optional
            ]
        return result

    def _converted(self, schema: Mapping[str, Any], *, is_request: bool) -> dict[str, Any]:
        if "$ref" in schema:
            return {"$ref": f"#/$defs/{schema['$ref']}"}
        kind = schema["type"]
        if kind == "any":
            return {}
        result: dict[str, Any] = {"type": kind}
        if kind == "string" and schema.get("format") in _PATTERNS:
            result["pattern"] = _PATTERNS[schema["format"]]
        if "enum" in schema:
            result["enum"] = schema["enum"]
        if kind == "array":
            result["items"] = self._converted(schema["items"], is_request=is_request)
        if kind == "object":
            result["properties"] = {
                key: self._converted(each, is_request=is_request)
                for key, each in schema.get("properties", {}).items()
                if not (is_request and each.get("readOnly"))
            }
            more = schema.get("additionalProperties")
            result["additionalProperties"] = (
                False if more is None else self._converted(more, is_request=is_request)
            )
        return result


def _methods(resources: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for each in resources.values():
        found += each.get("methods", {}).values()
        found += _methods(each.get("resources", {}))
    return found


def _is_required(schema: Mapping[str, Any]) -> bool:
    """Whether a field, or a parameter, is: texts say it more often than the flag does."""
    return bool(schema.get("required")) or schema.get("description", "").startswith("Required.")


def _shape(template: str) -> re.Pattern[str]:
    """The paths that a template stands for."""
    parts = re.split(r"\{[^}]+\}", template)
    return re.compile("[^/]+?".join(map(re.escape, parts)))
