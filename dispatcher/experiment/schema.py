"""The JSON Schema of an experiment file, for editors that complete and check while one types."""

from __future__ import annotations

from typing import Any

from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.fields import KINDS, Section
from dispatcher.experiment.keys import COMMENT, sections_of
from dispatcher.experiment.reference import reference_markdown
from dispatcher.experiment.search_space import TYPES

__all__ = ["json_schema", "reference_markdown"]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """Return the schema: camelCase keys to complete, snake_case ones accepted as well.

    Only ``bequeath validate`` checks what depends on several keys or on the disk.
    """
    schema = ExperimentConfig.model_json_schema(by_alias=True, mode="validation")
    _take_both_spellings(schema, ExperimentConfig, "#")
    for section in _sections_below(ExperimentConfig):
        name = section.__name__
        _take_both_spellings(schema["$defs"][name], section, f"#/$defs/{name}")
    _take_short_retention(schema["$defs"])
    schema["properties"]["searchSpace"]["additionalProperties"] = {
        "properties": {"_type": {"examples": list(TYPES)}, "_value": {"type": "array"}}
    }
    schema["patternProperties"][f"^{COMMENT}"] = {}
    one_trial = [_required("trialCommand", "trial_command")]
    one_trial.append(_required("trialFunction", "trial_function"))
    schema["allOf"] = [*schema.get("allOf", []), {"oneOf": one_trial}]
    return {"$schema": _DIALECT, **schema, "title": "bequeath experiment"}


def _sections_below(section: type[Section]) -> set[type[Section]]:
    sections: set[type[Section]] = set()
    for _, inner in sections_of(section):
        sections |= {inner} | _sections_below(inner)
    return sections


def _take_both_spellings(part: dict[str, Any], section: type[Section], root: str) -> None:
    """Let snake_case keys pass as patterns, which editors check but do not offer."""
    for value in part["properties"].values():
        if value.get("title") not in KINDS:
            value.pop("title", None)  # pydantic's guess: the key without its capitals
    snake = {info.alias: name for name, info in section.model_fields.items() if info.alias != name}
    patterns = {
        f"^{name}$": {"$ref": f"{root}/properties/{alias}"} for alias, name in snake.items()
    }
    if patterns:
        part["patternProperties"] = patterns
    required = part.pop("required", [])
    if required:
        part["allOf"] = [_required(key, snake.get(key, key)) for key in required]


def _required(camel: str, snake: str) -> dict[str, Any]:
    names = dict.fromkeys((camel, snake))
    return {"anyOf": [{"required": [name]} for name in names]}


def _take_short_retention(definitions: dict[str, Any]) -> None:
    """Add the shorter forms of ``retention``, which no model describes."""
    full = definitions["RetentionConfig"]
    word = full["properties"]["keep"]
    counted = {
        "type": "object",
        "properties": {
            key: {"type": "integer", "minimum": 1} for key in ("best", "lastGenerations")
        },
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }
    names = {"enum": word.pop("enum")}
    word.pop("type", None)
    word["anyOf"] = [names, counted]
    definitions["RetentionConfig"] = {"anyOf": [names, counted, full]}
