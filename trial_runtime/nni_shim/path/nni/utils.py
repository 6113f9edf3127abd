"""Helpers that tuners and trials import from ``nni.utils``."""

from __future__ import annotations

import argparse
from enum import Enum
from importlib import import_module
from typing import Any

from ._json import dump as to_json  # noqa: F401 - its name in v1.4 and later


class OptimizeMode(Enum):
    """Whether small or large results are good."""

    Minimize = "minimize"
    Maximize = "maximize"


class NodeType:
    """Keys of nested search spaces."""

    ROOT = "root"
    TYPE = "_type"
    VALUE = "_value"
    INDEX = "_index"
    NAME = "_name"


class MetricType:
    """Kinds of metrics."""

    FINAL = "FINAL"
    PERIODICAL = "PERIODICAL"
    REQUEST_PARAMETER = "REQUEST_PARAMETER"


class ClassArgsValidator:
    """Base of checks that an algorithm brings for its class arguments."""

    def validate_class_args(self, **kwargs: Any) -> None:
        """Raise if the arguments do not fit."""

    def choices(self, key: str, *args: Any) -> Any:
        """A check that a value is one of several, for the library ``schema``."""
        schema = import_module("schema")
        return schema.And(lambda n: n in args, error=f"{key} should be in [{args}]!")

    def range(self, key: str, keyType: Any, start: Any, end: Any) -> Any:  # noqa: N803
        """A check of type and bounds, for the library ``schema``.

        Args:
            key: names the argument in the text of the error.
            keyType: the type.
            start: the lower bound.
            end: the upper bound, included.
        """
        schema = import_module("schema")
        return schema.And(
            schema.And(keyType, error=f"{key} should be {keyType}"),
            schema.And(lambda n: start <= n <= end, error=f"{key} should be in {start} to {end}"),
        )

    def path(self, key: str) -> Any:
        """A check that a path exists, for the library ``schema``."""
        import os

        schema = import_module("schema")
        return schema.And(str, os.path.exists, error=f"{key} should be a path that exists")


def extract_scalar_reward(value: Any, scalar_key: str = "default") -> Any:
    """The number in a result: itself, or what a dict has under ``default``.

    Raises:
        RuntimeError: there is none.
    """
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, dict) and isinstance(value.get(scalar_key), (int, float)):
        return value[scalar_key]
    raise RuntimeError(
        f"a final result should be a number, or a dict with a number under {scalar_key!r}, "
        f"not {value!r}"
    )


def extract_scalar_history(trial_history: Any, scalar_key: str = "default") -> list[Any]:
    """The number in each of several results, see :func:`extract_scalar_reward`."""
    return [extract_scalar_reward(value, scalar_key) for value in trial_history]


def convert_dict2tuple(value: Any) -> Any:
    """Dicts and lists as sorted tuples, which can be members of sets."""
    if isinstance(value, dict):
        return tuple(sorted((key, convert_dict2tuple(inner)) for key, inner in value.items()))
    if isinstance(value, list):
        return tuple(convert_dict2tuple(inner) for inner in value)
    return value


def split_index(params: Any) -> Any:
    """Parameters without the ``_index`` that old tuners keep beside each ``_value``."""
    if not isinstance(params, dict):
        return params
    if NodeType.INDEX not in params:
        return {key: split_index(value) for key, value in params.items()}
    inner = params.get(NodeType.VALUE)
    return split_index(inner)


def randint_to_quniform(in_x: Any) -> None:
    """Turn each ``randint`` of a search space into ``quniform`` in steps of 1, in place, as tuners
    of v0.7 to v0.9 wanted it."""
    if isinstance(in_x, list):
        for each in in_x:
            randint_to_quniform(each)
    elif isinstance(in_x, dict):
        kind = in_x.get(NodeType.TYPE)
        if kind == "randint":
            in_x[NodeType.TYPE] = "quniform"
            in_x[NodeType.VALUE].append(1)
        elif kind == "choice":
            randint_to_quniform(in_x[NodeType.VALUE])
        elif kind is None:
            for each in in_x.values():
                randint_to_quniform(each)


def init_dispatcher_logger() -> None:
    """Do nothing: log records of a tuner go into its log in any case."""


def json2space(x: Any, oldy: Any = None, name: str = NodeType.ROOT) -> list[Any]:
    """The names of all parameters of a search space.

    Args:
        x: the search space, or a part of it.
        oldy: parameters with ``_index``: of a choice only their option counts; None: all do.
        name: of the part.
    """
    names: list[Any] = []
    if isinstance(x, dict):
        if NodeType.TYPE in x:
            of = f"{name}-{x[NodeType.TYPE]}"
            value: Any = x.get(NodeType.VALUE)
            if x[NodeType.TYPE] == "choice":
                index = oldy.get(NodeType.INDEX) if isinstance(oldy, dict) else None
                if index is not None:
                    inner = oldy.get(NodeType.VALUE)
                    names += json2space(value[index], inner, name=f"{of}[{index}]")
                else:
                    for place, option in enumerate(value or ()):
                        names += json2space(option, None, name=f"{of}[{place}]")
            names.append(of)
        else:
            for key, value in x.items():
                if key != NodeType.NAME:
                    below = oldy.get(key) if isinstance(oldy, dict) else None
                    names += json2space(value, below, name=f"{name}[{key}]")
    elif isinstance(x, list):
        for place, value in enumerate(x):
            below = oldy[place] if isinstance(oldy, list) else None
            names += json2space(value, below, name=f"{name}[{place}]")
    return names


def json2parameter(
    x: Any,
    is_rand: Any,
    random_state: Any,
    oldy: Any = None,
    Rand: bool = False,  # noqa: N803
    name: str = NodeType.ROOT,
) -> Any:
    """Draw parameters from a search space.

    Args:
        x: the search space, or a part of it.
        is_rand: by name of a parameter, whether to draw it; one that is not named is drawn.
        random_state: a numpy ``RandomState``.
        oldy: parameters with ``_index``, which stay where nothing is drawn; None: draw all.
        Rand: draw all, whatever ``is_rand`` has.
        name: of the part.
    """
    from . import parameter_expressions

    if isinstance(x, list):
        olds: list[Any] = oldy if isinstance(oldy, list) else [None] * len(x)
        return [
            json2parameter(value, is_rand, random_state, olds[n], Rand, f"{name}[{n}]")
            for n, value in enumerate(x)
        ]
    if not isinstance(x, dict):
        return x
    if NodeType.TYPE not in x:
        return {
            key: value
            if key == NodeType.NAME
            else json2parameter(
                value,
                is_rand,
                random_state,
                oldy.get(key) if isinstance(oldy, dict) else None,
                Rand,
                f"{name}[{key}]",
            )
            for key, value in x.items()
        }
    kind: str = x[NodeType.TYPE]
    value: Any = x.get(NodeType.VALUE)
    of = f"{name}-{kind}"
    fresh = Rand or bool(is_rand.get(of, True)) or oldy is None
    if kind != "choice":
        return getattr(parameter_expressions, kind)(*value, random_state) if fresh else oldy
    index = random_state.randint(len(value)) if fresh else oldy[NodeType.INDEX]
    below = None if fresh else oldy[NodeType.VALUE]
    inner = json2parameter(value[index], is_rand, random_state, below, fresh, f"{of}[{index}]")
    return {NodeType.INDEX: index, NodeType.VALUE: inner}


def merge_parameter(base_params: Any, override_params: Any) -> Any:
    """Put tuned values over a script's own, a dict or a namespace of ``argparse``, in place.

    Raises:
        ValueError: a name that the script does not have.
        TypeError: a value of another type.
    """
    if override_params is None:
        return base_params
    is_namespace = isinstance(base_params, argparse.Namespace)
    values = vars(base_params) if is_namespace else base_params
    for name, value in override_params.items():
        if name not in values:
            raise ValueError(f"the script has no parameter {name!r}")
        before = values[name]
        fits = before is None or value is None or isinstance(value, type(before))
        if not fits and not (isinstance(before, float) and isinstance(value, int)):
            raise TypeError(
                f"parameter {name!r} is of the wrong type: {type(before).__name__} expected, "
                f"not {type(value).__name__}"
            )
        if value is not None:
            values[name] = value
    return base_params
