"""Programs that import nothing of ours: how they get parameters, and where their results are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from dispatcher.experiment.fields import Section, Switch, Text, choice_reader
from dispatcher.experiment.problems import Misfit
from dispatcher.experiment.templates import check_quotes, names_in
from trial_runtime.parameter_text import variable_of
from tuners.space import parse
from tuners.space.model import Branch, Choice, Space, SpaceError

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys

#: Metrics beside the objective that are looked for, at most: each line is searched for all.
MOST_ALSO = 32

_MOST_FILTER = 1000

#: Keys of a report that are no metrics, see :mod:`trial_runtime.agent.programs.results`.
_RESERVED = ("default", "step")

#: Built-in tuners whose parameters are those of the search space, and no others.
_OF_THE_SPACE = (
    "Random",
    "GridSearch",
    "TPE",
    "CMA-ES",
    "GP",
    "QMC",
    "NSGA-II",
    "NSGA-III",
    "Optuna",
)

_read_way = choice_reader("arguments", "environment", "file")


def _read_ways(value: object) -> object:
    several = value if isinstance(value, list | tuple) else [value]
    ways = tuple(_read_way(each) for each in several)
    return tuple(dict.fromkeys(ways)) if all(isinstance(each, str) for each in ways) else ways


Way = Literal["arguments", "environment", "file"]
_WAYS: dict[str, Any] = {"enum": ["arguments", "environment", "file"]}

ParametersAs = Annotated[
    tuple[Way, ...],
    BeforeValidator(_read_ways),
    WithJsonSchema({"anyOf": [_WAYS, {"type": "array", "items": _WAYS}]}),
]


def _check_filter(pattern: str) -> str:
    """Refuse a filter that is no regular expression with two groups."""
    if len(pattern) > _MOST_FILTER:
        raise ValueError(f"has a filter of more than {_MOST_FILTER:,} characters")
    try:
        groups = re.compile(pattern, re.ASCII).groups
    except re.error as error:
        raise ValueError(f"has the filter {pattern!r}, which cannot be read: {error}") from None
    if groups < 2:
        raise ValueError(
            f"has the filter {pattern!r}, which needs two groups: one for the name, one for the "
            "value"
        )
    return pattern


def _check_metric(name: str) -> str:
    if name in _RESERVED:
        raise ValueError(f"is {name!r}, a key of each report that is no metric's name")
    if not name.isprintable():
        raise ValueError(f"holds characters that cannot be shown: {name!r}")
    return name


def _check_place(path: str) -> str:
    parts = path.split("/")
    if path.startswith("/") or ".." in parts or "" in parts or "\0" in path:
        raise ValueError(
            f"must be a path below the trial's own working directory, not {path!r}: all trials "
            "would write to the same file"
        )
    return path


MetricName = Annotated[Text, Field(max_length=200), AfterValidator(_check_metric)]
Filter = Annotated[Text, AfterValidator(_check_filter)]
Strategy = Annotated[
    Literal["latest", "min", "max"], BeforeValidator(choice_reader("latest", "min", "max"))
]


class MetricsConfig(Section):
    """The results of a program that imports nothing of ours: read from what it prints or writes."""

    objective: Annotated[MetricName, Field(description="Name of the metric that is the result.")]
    also: Annotated[
        tuple[MetricName, ...],
        Field(description="Names of further metrics, which stand beside it.", max_length=MOST_ALSO),
    ] = ()
    strategies: Annotated[
        dict[MetricName, Strategy],
        Field(
            description="The value of a metric that is the final one, by its name: `latest`, `min` "
            "or `max`; `latest` for those that are not named."
        ),
    ] = Field(default_factory=dict)
    stdout: Annotated[Switch, Field(description="Read what it prints to standard output.")] = False
    stderr: Annotated[Switch, Field(description="Read what it prints to standard error.")] = False
    file: Annotated[
        Annotated[Text, AfterValidator(_check_place)] | None,
        Field(
            description="A file that it writes, below its working directory. Each trial has a "
            "working directory of its own then, with links to the code, and the path is in "
            "`BEQUEATH_METRICS_FILE`."
        ),
    ] = None
    hypertune: Annotated[
        Switch,
        Field(
            description="Read the file that `hypertune` (`cloudml-hypertune`) writes, the library "
            "of AI Platform and Vertex AI: `CLOUD_ML_HP_METRIC_FILE` names it."
        ),
    ] = False
    format: Annotated[
        Annotated[Literal["text", "json"], BeforeValidator(choice_reader("text", "json"))],
        Field(
            description="Form of the file: `text`, lines with `name=value`; `json`, an object in "
            "each line."
        ),
    ] = "text"
    filters: Annotated[
        tuple[Filter, ...],
        Field(
            description="Regular expressions that find values in lines of text, in place of "
            "`name=value`: the first group is the name, the second the value.",
            max_length=MOST_ALSO,
        ),
    ] = ()

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        named = [("stdout", self.stdout or self.stderr), ("file", self.file is not None)]
        named.append(("hypertune", self.hypertune))
        sources = [name for name, is_given in named if is_given]
        if not sources:
            raise Misfit(
                "says nothing of where metrics are",
                hint="write 'stdout: true', 'file: PATH' or 'hypertune: true'",
            )
        if len(sources) > 1:
            raise Misfit(
                f"has both {sources[0]!r} and {sources[1]!r}",
                at=(sources[1],),
                hint="keep one of the two",
            )
        if self.format == "json" and self.file is None:
            raise Misfit(
                "has 'format: json', which is one of a file",
                at=("format",),
                hint="name the file, or leave it out",
            )
        if self.filters and (self.hypertune or self.format == "json"):
            raise Misfit(
                "has 'filters', which find values in lines of text",
                at=("filters",),
                hint="leave them out",
            )
        return self

    @model_validator(mode="after")
    def _names_agree(self) -> Self:
        names = [self.objective, *self.also]
        double = next((name for name in names if names.count(name) > 1), None)
        if double is not None:
            raise Misfit(f"names {double!r} twice", at=("also",), hint="name each metric once")
        for name in self.strategies:
            if name not in names:
                raise Misfit(
                    f"has a strategy for {name!r}, which is neither its objective nor in 'also'",
                    at=("strategies", name),
                    hint=f"there are {', '.join(names)}",
                )
        return self


def templates_of(config: AllKeys) -> tuple[str, ...]:
    """Return the parameters that the command and the environment of trials name."""
    return names_in([config.trial_command or "", *config.trial_environment.values()])


def branch_names(space: Space, *, below: bool = False) -> Iterator[str]:
    """Yield the names of parameters that not every trial has: those below a nested choice."""
    for name, dimension in space.dimensions:
        if below:
            yield name
        if isinstance(dimension, Choice):
            for option in dimension.options:
                if isinstance(option, Branch):
                    yield from branch_names(option.space, below=True)


def optional_names(config: AllKeys) -> tuple[str, ...]:
    """Return the names of parameters that not every trial of an experiment has."""
    try:
        return tuple(dict.fromkeys(branch_names(parse(config.search_space))))
    except SpaceError:
        return ()  # of a tuner of one's own, with entries of its own kind


def check_program(config: AllKeys) -> None:
    """Refuse keys for programs where there is none, and parameters that no trial will have.

    Raises:
        Misfit: at the key to change.
    """
    templates = templates_of(config)
    used = [("metrics", config.metrics is not None), ("parametersAs", bool(config.parameters_as))]
    used.append(("trialEnvironment", bool(names_in(config.trial_environment.values()))))
    used.append(("trialCommand", bool(templates)))
    key = next((name for name, is_used in used if is_used), None)
    if key is None:
        return
    if config.trial_command is None:
        raise Misfit(
            f"'{key}' is for programs, and this trial is a function",
            at=(key,),
            hint="a function gets its parameters, and returns or reports its result",
        )
    if config.for_nni:
        raise Misfit(
            f"'{key}' is for programs that import nothing, and this one is written for NNI",
            at=(key,),
            hint="leave it out: it gets parameters and reports results by NNI's functions; "
            "or write 'compatibility: none' if it uses none of them",
        )
    check_quotes(config.trial_command)
    _check_names(config, templates)


def _check_names(config: AllKeys, templates: tuple[str, ...]) -> None:
    try:
        space = parse(config.search_space)
    except SpaceError:
        return  # said by another rule, or of a tuner of one's own
    there = [name for name, _ in space.dimensions] + list(branch_names(space))
    if config.tuner.name in _OF_THE_SPACE:
        for name in templates:
            if name not in there:
                at = _place_of(config, name)
                raise Misfit(
                    f"'{at[0]}' names ${{trialParameters.{name}}}, and the search space has no "
                    f"{name!r}",
                    at=at,
                    hint=f"there are {', '.join(dict.fromkeys(there))}",
                )
    if "environment" in config.parameters_as or templates:
        by_variable: dict[str, str] = {}
        for name in dict.fromkeys([*there, *templates]):
            other = by_variable.setdefault(variable_of(name), name)
            if other != name:
                raise Misfit(
                    f"'searchSpace' has {other!r} and {name!r}, which would be one variable, "
                    f"{variable_of(name)}",
                    at=("searchSpace",),
                    hint="rename one of the two",
                )


def _place_of(config: AllKeys, name: str) -> tuple[str, ...]:
    if name in names_in([config.trial_command or ""]):
        return ("trialCommand",)
    keys = config.trial_environment
    return ("trialEnvironment", next(key for key in keys if name in names_in([keys[key]])))
