"""Changes of an experiment's settings after its start, checked as the file is."""

from __future__ import annotations

import difflib
from typing import Any

from pydantic import ValidationError

from dispatcher.errors import ExperimentFileError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.fields import fold_word
from dispatcher.experiment.keys import KeySettler, keys_of
from dispatcher.experiment.problems import ExperimentFileErrors
from dispatcher.experiment.sentences import explain, half_a_character
from tuners.plain_json import JsonPath

UPDATABLE = (
    "trialConcurrency",
    "maxTrialNumber",
    "maxExperimentDuration",
    "stopWhen",
    "searchSpace",
    "lookahead",
)


def apply_update(config: ExperimentConfig, key: str, value: Any) -> ExperimentConfig:
    """Return the configuration with one key changed.

    Args:
        config: the experiment as it runs.
        key: in camelCase or snake_case; one of :data:`UPDATABLE`.
        value: as in the file; text is read as YAML, so that ``"4"`` is a number.

    Raises:
        ExperimentFileErrors: no such key, one that is fixed once an experiment runs, or a
            value that the file could not have either.
    """
    name = _updatable(key)
    if isinstance(value, str):
        from dispatcher.experiment.yaml_text import read_source  # nobody else in a head reads YAML

        value = read_source(value, f"update of {name}").value
    values = config.model_dump(by_alias=True) | _settled(name, value)
    if name == "searchSpace":
        values["searchSpaceFile"] = None
    return _checked(values, f"update of {name}")


def _settled(name: str, value: Any) -> dict[str, Any]:
    """The key with its value under canonical keys; those that are unknown are refused."""
    wrong: list[ExperimentFileError] = []

    def refuse(_: JsonPath, text: str, hint: str) -> None:
        wrong.append(ExperimentFileError(text, hint=hint, where=f"update of {name}"))

    settled = KeySettler(ExperimentConfig, refuse).settle({name: value})
    if wrong:
        raise ExperimentFileErrors(wrong)
    return settled


def renamed(config: ExperimentConfig, name: str) -> ExperimentConfig:
    """Return the configuration under another name.

    Raises:
        ExperimentFileErrors: a name that the file could not have either.
    """
    return _checked(config.model_dump(by_alias=True) | {"experimentName": name}, "--name")


def _checked(values: dict[str, Any], where: str) -> ExperimentConfig:
    try:
        return ExperimentConfig.model_validate(values)
    except ValidationError as error:
        errors = [
            ExperimentFileError(text, hint=hint, where=where)
            for detail in error.errors(include_url=False)
            for _, text, hint in explain(detail)
        ]
        raise ExperimentFileErrors(errors) from error
    except UnicodeEncodeError as error:
        text, hint = half_a_character(error)
        raise ExperimentFileErrors([ExperimentFileError(text, hint=hint, where=where)]) from error


def _updatable(key: str) -> str:
    name = keys_of(ExperimentConfig).get(fold_word(key))
    if name in UPDATABLE:
        return name
    hint = f"once an experiment has started, {', '.join(UPDATABLE)} may be changed"
    if name is not None:
        text = f"{name!r} is fixed once an experiment has started"
    else:
        folded = {fold_word(each): each for each in UPDATABLE}
        near = difflib.get_close_matches(fold_word(key), folded, 1)
        text = f"unknown key {key!r}" + (f"; did you mean {folded[near[0]]!r}?" if near else "")
    raise ExperimentFileErrors([ExperimentFileError(text, hint=hint, where=f"update of {key}")])
