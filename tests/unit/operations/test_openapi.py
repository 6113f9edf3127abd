"""The description of routes is OpenAPI 3.1, and says of each what the table says.

It is judged by the schema that the OpenAPI Initiative publishes (spec.openapis.org, Apache-2.0),
which is kept here: a validator from PyPI brings eight packages for these two dozen lines.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator, ValidationError

from dispatcher.cli.main import PROGRAM
from dispatcher.operations.faults import FAULTS, Failure, problem_of
from dispatcher.operations.openapi import PREFIX, document
from dispatcher.operations.operation import Context, Scope, perform
from dispatcher.operations.table import OPERATIONS
from dispatcher.queries import TrialNotFound

SCHEMA = json.loads((Path(__file__).parent / "openapi-3.1.schema.json").read_text())


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return document("0.1.0")


def each_operation(described: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in described["paths"].items():
        for method, one in methods.items():
            yield path, method, one


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from nodes(each)


def test_it_is_openapi(described: dict[str, Any]) -> None:
    Draft202012Validator(SCHEMA).validate(described)
    assert json.loads(json.dumps(described)) == described


@pytest.mark.parametrize("fault", ["no parameter", "no response", "no openapi"])
def test_the_judge_bites(described: dict[str, Any], fault: str) -> None:
    broken = copy.deepcopy(described)
    one = broken["paths"][f"{PREFIX}/experiments/{{experiment}}"]["get"]
    if fault == "no parameter":
        del one["parameters"][0]["in"]
    elif fault == "no response":
        one["responses"]["200"].pop("description")
    else:
        del broken["openapi"]
    with pytest.raises(ValidationError):
        Draft202012Validator(SCHEMA).validate(broken)


def test_each_schema_is_one_and_each_reference_leads_to_one(described: dict[str, Any]) -> None:
    schemas = described["components"]["schemas"]
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    references = {one["$ref"] for one in nodes(described) if isinstance(one.get("$ref"), str)}
    assert references == {f"#/components/schemas/{name}" for name in schemas}, "one is unused"


def test_each_route_of_the_table_is_described(described: dict[str, Any]) -> None:
    """Mutation: an operation without its scope, or a parameter of a path that none has."""
    seen = {
        one["operationId"]: (path, method, one) for path, method, one in each_operation(described)
    }
    assert set(seen) == {row.ident for row in OPERATIONS.values() if row.route}
    for row in OPERATIONS.values():
        if not row.route:
            continue
        path, method, one = seen[row.ident]
        assert (method.upper(), path) == (row.method, PREFIX + row.path)
        assert one["x-scope"] == row.scope.value
        named = {each["name"] for each in one["parameters"] if each["in"] == "path"}
        assert named == set(re.findall(r"\{(\w+)\}", path))
        whole = {each["name"] for each in one["parameters"]} - {"experiment", "trial"}
        if "requestBody" not in one:
            assert whole == set(row.arguments.__struct_fields__)
        assert one["x-commands"] == [f"{PROGRAM} {verb}" for verb in row.verbs]
        statuses = {str(kind.status) for kind in FAULTS.values() if kind.kind == "refused"}
        assert statuses <= set(one["responses"])
        assert "`not-ours`" in one["responses"]["403"]["description"]
        assert ("may only read" in one["responses"]["403"]["description"]) is (
            row.scope is Scope.CHANGE
        )


@pytest.mark.parametrize(
    "name", ["experiment list", "status", "top", "why", "best", "lineage", "trial ls"]
)
def test_answers_fit_their_schemas(described: dict[str, Any], evolved: Path, name: str) -> None:
    """Mutation: an answer with a field that its type does not have, or of another type."""
    row = OPERATIONS[name]
    experiment = None if name == "experiment list" else str(evolved)
    context = Context(base=evolved.parent)
    answer = msgspec.json.encode(perform(row, context, experiment=experiment))
    validator_for(described, row.answer.__name__).validate(json.loads(answer))


def test_an_error_fits_its_schema(described: dict[str, Any], evolved: Path) -> None:
    with pytest.raises(TrialNotFound) as refused:
        perform(OPERATIONS["trial show"], Context(), experiment=str(evolved), trial=999)
    problem = problem_of(refused.value)
    assert (problem.kind, problem.exit_code) == ("no-trial", 3)
    assert problem.hint.startswith("its trials are numbered")
    answer = msgspec.json.encode(Failure(problem))
    validator_for(described, Failure.__name__).validate(json.loads(answer))


def validator_for(described: dict[str, Any], name: str) -> Draft202012Validator:
    reference = {"$ref": f"#/components/schemas/{name}"}
    return Draft202012Validator({**reference, "components": described["components"]})
