"""The page and the schema of an experiment file, from the fields themselves.

The page is for people; the JSON Schema is for editors that complete and check while one types.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from pydantic.fields import FieldInfo

from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.fields import KINDS, Section
from dispatcher.experiment.keys import COMMENT, sections_of
from dispatcher.experiment.quantities import format_duration, format_size
from tuners.space.forms import FORMS
from tuners.space.model import OWN_TYPES, TYPES

GROUPS: dict[str, tuple[str, ...]] = {
    "What is searched, and how": (
        "experiment_name",
        "dataset",
        "search_space",
        "search_space_file",
        "tuner",
        "assessor",
        "optimize_mode",
        "objectives",
        "seed",
    ),
    "What a trial is": (
        "trial_command",
        "trial_function",
        "trial_code_directory",
        "use_annotation",
        "trial_environment",
        "parameters_as",
        "metrics",
        "trial_nodes",
        "max_trial_duration",
        "trial_stop_grace",
        "on_trial_without_result",
        "max_log_size",
        "max_log_files",
    ),
    "How many, and how long": (
        "trial_concurrency",
        "lookahead",
        "max_trial_number",
        "max_experiment_duration",
        "stop_when",
    ),
    "What a trial needs ([how places are chosen](placement.md))": (
        "trial_gpu_number",
        "trial_cpu_number",
        "trial_memory_size",
        "trial_resources",
        "min_gpu_memory",
        "priority",
        "needs_key",
    ),
    "Tuner threads, errors and stalls": (
        "compatibility",
        "multi_thread",
        "on_tuner_error",
        "on_stall",
        "stall_timeout",
    ),
    "Failures": (
        "trial_retries",
        "lost_retries",
        "retries",
        "retry_backoff",
        "max_failed_trials_in_a_row",
        "quarantine_after",
        "quarantine_pause",
        "disk_reserve",
    ),
    "Weights": (
        "weights_root",
        "weights_root_options",
        "weight_keys",
        "weights_read_roots",
        "weights_cache",
        "retention",
        "shared_stores",
    ),
    "Where it runs": (
        "training_service",
        "fetch",
        "sinks",
        "callbacks",
        "head_grace",
        "channel",
        "leases",
        "limits",
        "experiment_working_directory",
        "share_with",
        "log_level",
        "debug",
    ),
}
"""Top-level attributes in the order of the reference."""

_INTRODUCTION = """\
# Configuration reference

<!-- Generated from dispatcher/experiment by `make docs`; edits here are lost. -->

An experiment file is YAML. Keys may be written in camelCase, as here, or in snake_case.

- *duration*: `90s`, `10m`, `0.5h`, `1h30m`, `2d`, or a number of seconds. Units: ms, s, m, h, d, w.
- *size*: `64mb`, `1.5gb`, or a number of bytes. Units: b, kb, mb, gb, tb, powers of 1024.
- A key at the top level that starts with `x-` is not read: a place for YAML anchors.
- *path*: relative ones count from the experiment file's folder; `~` is expanded.

`bequeath validate FILE` names everything that is wrong with a file, by line and column;
`bequeath config schema` prints a JSON Schema for editors.
"""


def reference_markdown() -> str:
    """Return the text of ``docs/configuration.md``."""
    schema = ExperimentConfig.model_json_schema(by_alias=True, mode="validation")
    parts = [_INTRODUCTION]
    for title, names in GROUPS.items():
        parts.append(f"## {title}\n\n{_table(ExperimentConfig, schema, names)}")
    parts.extend(_sections_below(ExperimentConfig, schema, ""))
    return "\n".join(parts)


def _sections_below(section: type[Section], schema: dict[str, Any], above: str) -> Iterator[str]:
    for key, inner in sections_of(section):
        described = schema["$defs"][inner.__name__]
        summary = described.get("description", "").partition("\n")[0]
        table = _table(inner, described, tuple(inner.model_fields))
        platform = described["properties"].get("platform", {}).get("const")
        which = f" with `platform: {platform}`" if platform else ""
        yield f"## Keys below `{above}{key}`{which}\n\n{summary}\n\n{table}"
        yield from _sections_below(inner, schema, f"{above}{key}.")


def _table(section: type[Section], schema: dict[str, Any], names: tuple[str, ...]) -> str:
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for name in names:
        info = section.model_fields[name]
        key = info.alias or name
        kind = _kind(schema["properties"][key])
        text = (info.description or "").replace("|", "\\|")
        rows.append(f"| `{key}` | {kind} | {_default(info, kind)} | {text} |")
    return "\n".join(rows) + "\n"


def _kind(schema: dict[str, Any]) -> str:
    """Name the kind of value in a word or two."""
    if "$ref" in schema:
        return "section"
    if "title" in schema and schema["title"] in KINDS:
        return str(schema["title"])
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema or "oneOf" in schema:
        kinds = dict.fromkeys(_kind(part) for part in schema.get("anyOf") or schema["oneOf"])
        return " or ".join(kind for kind in kinds if kind != "nothing")
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    names = {"integer": "whole number", "boolean": "true, false", "null": "nothing"}
    names |= {"string": "text", "object": "mapping"}
    kind = str(schema.get("type", "any"))
    return names.get(kind, kind)


def _default(info: FieldInfo, kind: str) -> str:
    if info.is_required():
        return "*required*"
    value = info.get_default(call_default_factory=True, validated_data={})
    if value is None or isinstance(value, Section):
        return "–"
    if kind == "duration":
        return f"`{format_duration(float(value))}`"
    if kind == "size":
        return f"`{format_size(int(value))}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        value = list(value)
    return f"`{os.fspath(value) if isinstance(value, os.PathLike) else value}`"


_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """Return the schema: camelCase keys to complete, snake_case ones accepted as well.

    Only ``bequeath validate`` checks what depends on several keys or on the disk.
    """
    schema = ExperimentConfig.model_json_schema(by_alias=True, mode="validation")
    _take_both_spellings(schema, ExperimentConfig, "#")
    for section in _all_sections_below(ExperimentConfig):
        name, short = section.__name__, section.short_schema
        whole = f"{name}InFull" if short else name
        full = schema["$defs"].pop(name)
        _take_both_spellings(full, section, f"#/$defs/{whole}")
        schema["$defs"][whole] = full
        if short:
            schema["$defs"][name] = {"anyOf": [dict(short), {"$ref": f"#/$defs/{whole}"}]}
    _take_short_retention(schema["$defs"])
    schema["properties"]["searchSpace"]["additionalProperties"] = {
        "properties": {
            "_type": {"examples": [*TYPES, *OWN_TYPES]},
            "_value": {"type": ["array", "object"]},
        },
        "examples": [form.example for form in FORMS.values()],
    }
    schema["patternProperties"][f"^{COMMENT}"] = {}
    one_trial = [_required("trialCommand", "trial_command")]
    one_trial.append(_required("trialFunction", "trial_function"))
    schema["allOf"] = [*schema.get("allOf", []), {"oneOf": one_trial}]
    return {"$schema": _DIALECT, **schema, "title": "bequeath experiment"}


def _all_sections_below(section: type[Section]) -> set[type[Section]]:
    sections: set[type[Section]] = set()
    for _, inner in sections_of(section):
        sections |= {inner} | _all_sections_below(inner)
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
