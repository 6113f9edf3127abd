"""The resources that trials need and machines offer: GPUs, CPUs, memory, and named resources.

The keys stand where NNI has them: :class:`TrialNeeds` is a base of the whole file and of each
service, :class:`OfferedResources` of each service and each machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field, PlainValidator, Strict, WithJsonSchema

from dispatcher.experiment.fields import Count, Section, Size, Switch, Text
from dispatcher.experiment.problems import Misfit

MOST_PRIORITY = 1_000_000
"""Any more is a slip of the finger, or a time stamp."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_INDICES = re.compile(r"\s*\d+\s*(,\s*\d+\s*)*")
_COUNTED = {"gpu": "GpuNumber", "cpu": "CpuNumber", "memory": "MemorySize"}


def _number(value: object) -> float:
    """Read a number; ``true`` and texts are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a number, not {value!r}")
    number = float(value)
    if number - number != 0:
        raise ValueError("must be a finite number")
    if number < 0:
        raise ValueError(f"must not be negative, as {value!r} is")
    return number


def _read_gpus(value: object) -> float:
    number = _number(value)
    if number > 1 and not number.is_integer():
        raise ValueError(
            f"must be a share of one GPU, up to 1, or a whole number of them, not {value!r}"
        )
    return number


def _read_amount(value: object) -> float:
    number = _number(value)
    if number == 0:
        raise ValueError("must be more than nothing")
    return number


def _read_amounts(value: object) -> dict[str, float]:
    if not isinstance(value, Mapping):
        raise ValueError(f"must be names with their amounts, as in {{licence: 1}}, not {value!r}")
    amounts: dict[str, float] = {}
    for name, amount in value.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(f"has the name {name!r}; write letters, digits, '.', '_' and '-'")
        kind = name.lower().removesuffix("s")
        if kind in _COUNTED:
            raise ValueError(f"has the name {name!r}; that is what 'trial{_COUNTED[kind]}' counts")
        try:
            amounts[name] = _read_amount(amount)
        except ValueError as error:
            raise ValueError(f"has {name!r}, which {error}") from None
    return amounts


def _read_indices(value: object) -> tuple[int, ...]:
    """Read a list, one number, or NNI's ``"0,1"``."""
    if isinstance(value, str) and _INDICES.fullmatch(value):
        value = [int(part) for part in value.split(",")]
    elif isinstance(value, int) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(f"must be a list of GPUs, counted from 0, not {value!r}")
    indices: list[int] = []
    for index in value:
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            raise ValueError(f"must hold numbers of GPUs, counted from 0, not {index!r}")
        if index in indices:
            raise ValueError(f"names GPU {index} twice")
        indices.append(index)
    return tuple(indices)


_NUMBER_SCHEMA: dict[str, Any] = {"type": "number", "minimum": 0}
_INDICES_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
        {"type": "integer", "minimum": 0},
        {"type": "string", "pattern": rf"^{_INDICES.pattern}$"},
    ]
}

GpuNumber = Annotated[float, PlainValidator(_read_gpus), WithJsonSchema(_NUMBER_SCHEMA)]
Amount = Annotated[float, PlainValidator(_read_amount), WithJsonSchema(_NUMBER_SCHEMA)]
Cost = Annotated[float, PlainValidator(_number), WithJsonSchema(_NUMBER_SCHEMA)]
Indices = Annotated[tuple[int, ...], PlainValidator(_read_indices), WithJsonSchema(_INDICES_SCHEMA)]
Amounts = Annotated[
    dict[str, float],
    PlainValidator(_read_amounts),
    WithJsonSchema({"type": "object", "additionalProperties": _NUMBER_SCHEMA}),
]
Priority = Annotated[int, Strict(), Field(ge=-MOST_PRIORITY, le=MOST_PRIORITY)]


class TrialNeeds(Section):
    """The keys for the resources of each running trial, unless its tuner asks for others."""

    trial_gpu_number: Annotated[
        GpuNumber | None,
        Field(
            description="GPUs of one trial: whole ones of one machine, or below 1 a share of one; "
            "0 hides them all from it; if not given, trials see what there is and nothing is "
            "counted."
        ),
    ] = None
    trial_cpu_number: Annotated[
        Amount | None,
        Field(description="CPU cores of one trial; not counted if not given."),
    ] = None
    trial_memory_size: Annotated[
        Size | None, Field(description="Memory of one trial; not counted if not given.")
    ] = None
    trial_resources: Annotated[
        Amounts,
        Field(
            description="Further resources of one trial, by names of your own: `{licence: 1}`. It "
            "runs where `resources` has as much left."
        ),
    ] = Field(default_factory=dict)


class ExperimentNeeds(TrialNeeds):
    """Keys for trials' needs that only the whole experiment can have."""

    min_gpu_memory: Annotated[
        Size | None,
        Field(
            description="Memory that each GPU of a trial must have; any if not given. Trials that "
            "need no GPUs (see `trialGpuNumber`) run anywhere all the same."
        ),
    ] = None
    priority: Annotated[
        Priority,
        Field(
            description="Priority of trials whose tuner gives them none: higher ones go first, "
            "equals in the order in which they came."
        ),
    ] = 0
    needs_key: Annotated[
        Text,
        Field(
            description="Key of a proposal that holds the trial's own needs, as `{gpus: 8}`; the "
            "trial does not see it."
        ),
    ] = "_needs"


class OfferedResources(Section):
    """The keys for what a machine offers to trials, and when it is chosen."""

    other_names: ClassVar[Mapping[str, str]] = {"maxTrialNumPerGpu": "maxTrialNumberPerGpu"}

    gpu_indices: Annotated[
        Indices | None,
        Field(
            description="GPUs that trials may use, as `nvidia-smi` counts them; all if not given."
        ),
    ] = None
    max_trial_number_per_gpu: Annotated[
        Count | None,
        Field(
            description="Trials that may share a GPU; each that needs whole ones takes this part "
            "of them. If not given, only trials that need less than 1 share."
        ),
    ] = None
    use_active_gpu: Annotated[
        Switch | None,
        Field(
            description="Whether trials may use GPUs on which others compute; if not given, they "
            "may not."
        ),
    ] = None
    min_gpu_memory: Annotated[
        Size | None,
        Field(description="Memory that a GPU must have, or trials do not use it."),
    ] = None
    resources: Annotated[
        Amounts,
        Field(
            description="Further resources that it has for trials, by names of your own: "
            "`{licence: 4}`."
        ),
    ] = Field(default_factory=dict)
    cost: Annotated[
        Cost | None,
        Field(description="Cheaper machines are filled first; 0 if not given."),
    ] = None
    storage_domain: Annotated[
        Text | None,
        Field(
            description="Machines of one domain reach the same weights: a trial that inherits "
            "runs where its parent's weights are. One domain for all if not given."
        ),
    ] = None


def effective_needs(top: TrialNeeds, service: TrialNeeds | Sequence[TrialNeeds]) -> TrialNeeds:
    """Return the needs of each trial, from the top level of the file or from its services.

    Services, one or a list, may give them in place of the top level, as in NNI.

    Raises:
        Misfit: two places say different things; a trial would be another on each machine.
    """
    listed = isinstance(service, Sequence)
    services = service if isinstance(service, Sequence) else (service,)
    effective: dict[str, Any] = {}
    for attribute, info in TrialNeeds.model_fields.items():
        values: dict[tuple[str | int, ...], Any] = {(): getattr(top, attribute)}
        for index, each in enumerate(services):
            place = (index,) if listed else ()
            values["trainingService", *place, str(info.alias)] = getattr(each, attribute)
        given = {at: value for at, value in values.items() if value is not None and value != {}}
        effective[attribute] = next(iter(given.values()), getattr(top, attribute))
        for at, value in given.items():
            if value != effective[attribute]:
                raise Misfit(
                    f"'{info.alias}' is given twice, as {effective[attribute]!r} and {value!r}",
                    at=at,
                    hint=f"give '{info.alias}' once, at the top level",
                )
    return TrialNeeds.model_construct(**effective)


def offered(service: OfferedResources, machine: OfferedResources | None) -> OfferedResources:
    """Return what one machine offers: its own values, else those of its service for all."""
    values: dict[str, Any] = {}
    for attribute in OfferedResources.model_fields:
        own = getattr(machine, attribute, None)
        usual = getattr(service, attribute)
        values[attribute] = usual if own is None or own == {} else own
    return OfferedResources.model_construct(**values)
