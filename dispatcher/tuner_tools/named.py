"""Resolves a tuner's name on a command line: ``MODULE:CLASS``, ``FILE:CLASS`` or a built-in."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dispatcher.errors import UserError
from dispatcher.experiment.dialects import first_to_know
from dispatcher.experiment.loader import load_search_space
from dispatcher.tuner_host import TunerHostConfig
from trial_runtime.endpoint import Endpoint
from tuners.builtin import builtin_assessor, builtin_tuner, fold
from tuners.catalogue import EXAMPLE_ARGUMENTS
from tuners.errors import TunerArgumentError
from tuners.space import as_json

#: Numbers and choices of several types, to try a tuner with if no search space is given.
SPACE: dict[str, Any] = {
    "lr": {"_type": "loguniform", "_value": [0.0001, 0.1]},
    "momentum": {"_type": "uniform", "_value": [0.0, 0.99]},
    "units": {"_type": "randint", "_value": [8, 128]},
    "dropout": {"_type": "quniform", "_value": [0, 0.5, 0.1]},
    "activation": {"_type": "choice", "_value": ["relu", "gelu"]},
}


def named_tuner(
    tuner: str | type, arguments: Mapping[str, Any], space: Mapping[str, Any] | Path | None
) -> TunerHostConfig:
    """Make a tuner host's configuration, whose endpoint and folders the caller still has to set.

    Args:
        tuner: ``MODULE:CLASS``, ``FILE.py:CLASS``, a built-in name, or the class itself.
        arguments: of its constructor; none give a built-in tuner its example's.
        space: the search space, or a file of it; None takes :data:`SPACE`.

    Raises:
        UserError: no such tuner or file.
        ExperimentFileErrors: the search space cannot be read.
    """
    if isinstance(space, Path):
        space = load_search_space(space)
    where = _where(tuner) if isinstance(tuner, str) else _where_is_class(tuner)
    if "builtin" in where and not arguments:
        arguments = EXAMPLE_ARGUMENTS.get(fold(where["builtin"]), {})
    return TunerHostConfig(
        endpoint=Endpoint(""),
        weights_root="",
        class_args=dict(arguments),
        search_space=json.dumps(as_json(SPACE if space is None else space)),
        seed=0,
        **where,
    )


def class_arguments(text: str) -> dict[str, Any]:
    """Read the JSON object of ``--class-args``.

    Raises:
        UserError: it is none.
    """
    try:
        arguments = json.loads(text)
    except ValueError as error:
        raise UserError(f"--class-args is no JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise UserError("--class-args is no JSON object", hint="write e.g. '{\"seed\": 1}'")
    return arguments


def _where(text: str) -> dict[str, Any]:
    place, colon, name = text.rpartition(":")
    if not colon:
        try:
            builtin_tuner(text)
        except TunerArgumentError as error:
            hint = _instead(text) or f"{error.hint} Or write MODULE:CLASS or FILE.py:CLASS."
            raise UserError(error.message.rstrip("."), hint=hint) from error
        return {"builtin": text}
    if place.endswith(".py") or "/" in place:
        file = Path(place).absolute()
        if not file.is_file():
            raise UserError(f"there is no file {place}")
        return {"class_name": name, "file": str(file), **_surroundings(file)}
    folder = Path.cwd()
    module = folder.joinpath(*place.split("."))
    surroundings = _surroundings(module.with_name(f"{module.name}.py"))
    return {"class_name": text, "code_directory": str(folder), **surroundings}


def _where_is_class(tuner: type) -> dict[str, Any]:
    """Say where another process finds a class: its module if that is importable, else its file."""
    if "<locals>" in tuner.__qualname__:
        raise UserError(
            f"the class {tuner.__qualname__} is defined inside a function, where no other process "
            "finds it",
            hint="define it at the top of a module",
        )
    try:
        file = Path(inspect.getfile(tuner)).resolve()
    except (OSError, TypeError) as error:
        raise UserError(
            f"the class {tuner.__qualname__} is in no file", hint="write it into a module"
        ) from error
    names = tuner.__module__.split(".")
    module = file.parent if file.name == "__init__.py" else file.with_suffix("")
    if list(module.parts[-len(names) :]) != names:  # such as __main__
        return {"class_name": tuner.__qualname__, "file": str(file), **_surroundings(file)}
    return {
        "class_name": f"{tuner.__module__}:{tuner.__qualname__}",
        "code_directory": str(module.parents[len(names) - 1]),
        **_surroundings(file),
    }


def _instead(text: str) -> str:
    """Advice for a text that names something else than a tuner; empty if it names nothing."""
    if Path(text).suffix in (".yml", ".yaml", ".json"):
        return "that is a file of an experiment or a space: name its tuner's class, MODULE:CLASS"
    module = text if text.endswith(".py") else f"{text.replace('.', '/')}.py"
    if Path(module).is_file():
        return f"name the class in it as well: {text}:CLASS"
    try:
        builtin_assessor(text)
    except TunerArgumentError:
        return ""
    return "that is an assessor; what is checked is tuners"


def _surroundings(file: Path) -> dict[str, Any]:
    """Settings for code that is written for another framework: it manages weights by itself."""
    known = first_to_know(lambda dialect: dialect.is_imported_by(file))
    return {"adapter": known[0].tuner_adapter, "save_key": "", "restore_key": ""} if known else {}
