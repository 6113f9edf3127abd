"""Azure Resource Manager's contract as a judge of requests and answers: schemas whose bases are
told apart by a discriminator, and a list of operations."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

Document = Any


class ArmContract:
    """The contract of one provider.

    Args:
        schemas: files with ``$defs``.
        operations: file with methods, paths and parameters by name.
        version: of the interface.
        bodies: the definition of the body that an operation wants, by its name; none: it takes no
            body.
        answers: statuses of an operation, and the definition of an answer with a body.
    """

    def __init__(
        self,
        schemas: list[Path],
        operations: Path,
        version: str,
        bodies: Mapping[str, str],
        answers: Mapping[str, tuple[str, tuple[int, ...]]],
    ) -> None:
        self._defs: dict[str, Any] = {}
        for file in schemas:
            self._defs |= json.loads(file.read_text("utf-8"))["$defs"]
        self._operations = {
            name: (each["method"], _shape(each["path"]), frozenset(each["query"]))
            for name, each in json.loads(operations.read_text("utf-8")).items()
        }
        self._version, self._bodies, self._answers = version, bodies, answers
        self._asked = self._closed(is_request=True)
        self._answered = self._closed(is_request=False)

    def operation(self, method: str, path: str) -> str:
        """The name of the operation that a request asks for; empty: there is none."""
        for name, (own, shape, _) in self._operations.items():
            if own == method and shape.fullmatch(path):
                return name
        return ""

    def request(
        self, method: str, path: str, query: Mapping[str, str], body: Document
    ) -> list[str]:
        """What the contract has against a request.

        Args:
            method: of HTTP.
            path: whole.
            query: parameters.
            body: read; None: there is none.
        """
        name = self.operation(method, path)
        if not name:
            return [f"{method} {path}: there is no such operation"]
        known = self._operations[name][2]
        wrong = [f"{name}: there is no parameter {each!r}" for each in query if each not in known]
        if query.get("api-version") != self._version:
            wrong.append(f"{name}: its api-version is not {self._version}")
        wanted = self._bodies.get(name)
        if wanted is None:
            return wrong if body is None else [*wrong, f"{name}: it takes no body"]
        if body is None:
            return [*wrong, f"{name}: its body is missing"]
        return wrong + self._complaints(self._asked, wanted, body)

    def answer(self, method: str, path: str, status: int, body: Document) -> list[str]:
        """What the contract has against an answer of ours.

        Args:
            method: of the request.
            path: of the request.
            status: of the answer.
            body: read; None: there is none.
        """
        name = self.operation(method, path)
        if status >= 400:
            return self._complaints(self._answered, "ErrorResponse", body)
        definition, statuses = self._answers.get(name, ("", ()))
        wrong = [] if status in statuses else [f"{name}: it never answers {status}"]
        if not definition:
            return wrong if body is None else [*wrong, f"{name}: its answer has no body"]
        return wrong + self._complaints(self._answered, definition, body)

    def _complaints(self, defs: Document, name: str, value: Document) -> list[str]:
        validator = Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": defs})
        found = []
        for error in validator.iter_errors(value):
            inner = error
            while inner.context:  # of several kinds, the one that comes nearest
                inner = min(inner.context, key=lambda each: (-len(each.path), str(each.message)))
            found.append(f"{'.'.join(map(str, error.absolute_path))}: {inner.message[:300]}")
        return found

    def _closed(self, *, is_request: bool) -> dict[str, Any]:
        return {name: self._read(each, is_request) for name, each in self._defs.items()}

    def _read(self, schema: Document, is_request: bool) -> Document:
        """A schema whose objects have no fields but those that they name; what only answers have is
        in no request."""
        if isinstance(schema, list):
            return [self._read(each, is_request) for each in schema]
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema:
            kinds = self._kinds(schema["$ref"].rpartition("/")[2])
            return {"anyOf": [{"$ref": each} for each in kinds]} if kinds else schema
        result = {
            key: self._read(value, is_request)
            for key, value in schema.items()
            if key not in ("discriminator", "properties", "readOnly", "format")
        }
        if isinstance(schema.get("properties"), dict):
            result["properties"] = {
                key: self._read(value, is_request)
                for key, value in schema["properties"].items()
                if not (is_request and isinstance(value, dict) and value.get("readOnly"))
            }
            result.setdefault("additionalProperties", False)
        return result

    def _kinds(self, name: str) -> list[str]:
        """References to the kinds of a base; none: it is no base."""
        mapping = self._defs[name].get("discriminator", {}).get("mapping", {})
        own = f"#/$defs/{name}"
        return [] if own in mapping.values() else list(mapping.values())


def _shape(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{[^}]+\}", template)
    return re.compile("[^/]+?".join(map(re.escape, parts)), re.IGNORECASE)
