"""Published contracts as judges of requests and answers: closed, so that a misspelt field is an
error.

Schemas of OpenAPI 3.0 are read as JSON Schema 2020-12: ``nullable`` becomes a type, and an object
that names its fields has no others, unless the contract itself says that it may. A service with a
contract of another form (a discovery document, definitions derived from a client) makes its own
schemas of it and judges by :func:`closed` and :class:`Judge`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from ruamel.yaml import YAML

Document = Any

#: Key words of a schema that say nothing of what is valid.
_SAYINGS = ("description", "example", "examples", "title", "discriminator", "xml", "externalDocs")

#: Answers that come from gateways in front of a service, and that few contracts list.
GATEWAY = frozenset({401, 403, 429, 500, 502, 503, 504})


class Judge:
    """Schemas by name, closed where they are not open by the contract.

    Args:
        documents: those of the contract, by the address by which others refer to them; the one that
            is asked about is ``""``.
        open_at: pointers, within their document, of objects that may have any field, whatever they
            name: where the text of the contract says so.
    """

    def __init__(self, documents: Mapping[str, Document], open_at: Collection[str] = ()) -> None:
        self._documents = documents
        self._open_at = frozenset(open_at)
        self._defs: dict[str, Any] = {}

    def complaints(self, schema: Document, value: Document) -> list[str]:
        """What the contract has against a value.

        Args:
            schema: of the main document, perhaps a reference into it.
            value: of JSON or YAML.
        """
        converted = self._converted(schema, "", "#", is_closed=True)
        validator = Draft202012Validator({**converted, "$defs": self._defs})
        return [
            f"{'.'.join(map(str, each.absolute_path))}: {each.message[:300]}"
            for each in validator.iter_errors(value)
        ]

    def part(self, document: str, pointer: str) -> Document:
        """A part of a document.

        Args:
            document: its address.
            pointer: ``#/components/schemas/A``.
        """
        value = self._documents[document]
        for key in pointer.removeprefix("#").split("/"):
            if key:
                value = value[key.replace("~1", "/").replace("~0", "~")]
        return value

    def _reference(self, reference: str, document: str, is_closed: bool) -> dict[str, Any]:
        address, _, pointer = reference.partition("#")
        document = address or document
        name = re.sub(r"\W", "_", f"{document}{pointer}{'' if is_closed else '_open'}")
        if name not in self._defs:
            self._defs[name] = True  # it may refer to itself
            schema = self.part(document, f"#{pointer}")
            self._defs[name] = self._converted(schema, document, f"#{pointer}", is_closed=is_closed)
        return {"$ref": f"#/$defs/{name}"}

    def _converted(
        self, schema: Document, document: str, at: str, *, is_closed: bool
    ) -> dict[str, Any]:
        if "$ref" in schema:
            return self._reference(schema["$ref"], document, is_closed)
        result: dict[str, Any] = {}
        is_object = "properties" in schema or "allOf" in schema
        for key, value in schema.items():
            place = f"{at}/{key}"
            if key in ("allOf", "anyOf", "oneOf"):
                inner = is_closed and not is_object
                result[key] = [
                    self._converted(each, document, f"{place}/{n}", is_closed=inner)
                    for n, each in enumerate(value)
                ]
            elif key in ("items", "not") or (key == "additionalProperties" and value not in _BOTH):
                result[key] = self._converted(value, document, place, is_closed=True)
            elif key == "properties":
                result[key] = {
                    name: self._converted(each, document, f"{place}/{name}", is_closed=True)
                    for name, each in value.items()
                }
            elif key not in (*_SAYINGS, "nullable", "format", "default", "readOnly", "writeOnly"):
                result[key] = value
        if is_object and is_closed and not (at in self._open_at or self._may_have_more(schema)):
            result["unevaluatedProperties"] = False
        return {"anyOf": [{"type": "null"}, result]} if schema.get("nullable") else result

    def _may_have_more(self, schema: Document) -> bool:
        return schema.get("additionalProperties") not in (None, False)


_BOTH = (True, False)


class OpenApi:
    """A contract of paths and their operations.

    Args:
        file: the main document, YAML or JSON.
        others: further files, by the addresses by which it refers to them.
        open_at: see :class:`Judge`.
        gateway: answers that it does not list and that may come all the same.
    """

    def __init__(
        self,
        file: Path,
        others: Mapping[str, Path] | None = None,
        *,
        open_at: Collection[str] = (),
        gateway: Collection[int] = GATEWAY,
    ) -> None:
        self._document = read(file)
        documents = {"": self._document}
        documents |= {address: read(path) for address, path in (others or {}).items()}
        self.judge = Judge(documents, open_at)
        self._gateway = frozenset(gateway)
        self._paths = {each: _shape(each) for each in self._document["paths"]}

    def operation(self, method: str, path: str) -> Document | None:
        """The operation that a request asks for; None: the contract has none."""
        templates = [t for t, shape in self._paths.items() if shape.fullmatch(path)]
        for template in sorted(templates, key=lambda each: each.count("{")):
            there = self._document["paths"][template]
            if method.lower() in there:
                return {"parameters": there.get("parameters", []), **there[method.lower()]}
        return None

    def request(
        self, method: str, path: str, query: Mapping[str, str], kind: str, body: Document
    ) -> list[str]:
        """What the contract has against a request.

        Args:
            method: of HTTP.
            path: below the service's address.
            query: parameters.
            kind: the type of the body, without its parameters.
            body: read; None: there is none.
        """
        operation = self.operation(method, path)
        if operation is None:
            return [f"{method} {path}: there is no such operation"]
        wrong = [
            f"{method} {path}: there is no parameter {name!r}"
            for name in query
            if name not in self._parameters(operation)
        ]
        for name, schema in self._parameters(operation).items():
            if name in query:
                value = _value_of(query[name], schema)
                wrong += [f"{name}: {each}" for each in self.judge.complaints(schema, value)]
        wanted = operation.get("requestBody")
        if wanted is None:
            return wrong if body is None else [*wrong, f"{method} {path}: it takes no body"]
        if body is None:
            return [*wrong, f"{method} {path}: its body is missing"]
        content = wanted["content"].get(kind)
        if content is None:
            return [*wrong, f"{method} {path}: its body is no {kind}"]
        return [*wrong, *self.judge.complaints(content["schema"], body)]

    def answer(self, method: str, path: str, status: int, kind: str, body: Document) -> list[str]:
        """What the contract has against an answer of ours.

        Args:
            method: of the request.
            path: of the request.
            status: of the answer.
            kind: the type of the body, without its parameters.
            body: read; None: there is none.
        """
        operation = self.operation(method, path)
        if operation is None:
            return [] if status == 404 else [f"{method} {path}: no operation, and {status}"]
        response = operation["responses"].get(str(status))
        if response is None:
            unlisted = [f"{method} {path}: it never answers {status}"]
            return [] if status in self._gateway else unlisted
        if "$ref" in response:
            response = self.judge.part("", response["$ref"])
        content = response.get("content", {}).get(kind)
        if content is None:
            return [f"{method} {path}: {status} is no {kind}"] if response.get("content") else []
        found = self.judge.complaints(content["schema"], body)
        return [f"{method} {path} {status}: {each}" for each in found]

    def _parameters(self, operation: Document) -> dict[str, Document]:
        given = {}
        for each in operation.get("parameters", []):
            parameter = self.judge.part("", each["$ref"]) if "$ref" in each else each
            if parameter["in"] == "query":
                given[parameter["name"]] = parameter["schema"]
        return given


def _shape(template: str) -> re.Pattern[str]:
    """The paths that a template stands for."""
    parts = re.split(r"\{[^}]+\}", template)
    return re.compile("[^/]+?".join(map(re.escape, parts)))


def closed(schema: Document) -> Document:
    """A JSON Schema whose objects have no fields but those that they name."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    if isinstance(result.get("properties"), dict):
        result.setdefault("additionalProperties", False)
    return result


def read(file: Path) -> Document:
    """The document in a file, YAML or JSON."""
    return YAML(typ="safe", pure=True).load(file.read_text("utf-8"))


def _value_of(text: str, schema: Document) -> Document:
    """The value that a text of a query stands for."""
    kind = schema.get("type")
    try:
        return {"number": float, "integer": int, "boolean": _truth}.get(kind, str)(text)  # type: ignore[operator]
    except ValueError:
        return text


def _truth(text: str) -> Document:
    return {"true": True, "false": False}.get(text, text)
