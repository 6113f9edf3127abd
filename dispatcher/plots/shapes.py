"""Plots as plain records: the JSON of routes and ``--json``, and the source of PNGs.

Lists of one record that have the same length belong together, an element a trial. Numbers are
finite; null stands for a parameter that a trial does not have. Times are seconds since the epoch.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from dispatcher.queries import OptimizeMode

#: Objectives of a front at most.
MOST_OBJECTIVES: Final = 6


class Plot(msgspec.Struct, frozen=True):
    """The base of all: of which experiment, as of which cursor, and what people should know.

    ``results`` counts the trials that have a number for this plot, ``used`` those that were looked
    at: of more than ten thousand the best and an even part of the others.
    """

    experiment: str
    title: str
    cursor: str
    notes: list[str]


class ResultPlot(Plot, frozen=True):
    """Base of plots of parameters against one result.

    ``metric`` names the result, ``metrics`` all that there are; ``default`` is that by which trials
    are compared. ``parameters`` names those in which trials differ.
    """

    metric: str
    metrics: list[str]
    mode: OptimizeMode
    results: int
    used: int
    parameters: list[str]


class Axis(msgspec.Struct, frozen=True):
    """One parameter's axis. A value is a number between ``low`` and ``high``, on a logarithmic axis
    too; of choices its place in ``choices``. ``missing`` counts the trials without it."""

    name: str
    kind: Literal["number", "log", "choice"]
    low: float
    high: float
    choices: list[str]
    missing: int


class JudgedParameter(msgspec.Struct, frozen=True):
    """How much worse results are predicted without knowing this parameter: ``importance`` is the
    drop of the share of their variance that is explained (R²), ``error`` its standard error."""

    name: str
    importance: float
    error: float


class Importance(ResultPlot, frozen=True):
    """Parameters by importance, the most important first.

    ``explained`` is the share of the variance of results that a model explains of trials that it
    has not seen; null with too few trials. ``inherited`` is the same drop for the parent's result.
    ``alike`` are pairs that rose and fell together: their importance cannot be told apart. ``rest``
    was not judged.
    """

    method: str
    seed: int
    fitted: int
    explained: float | None
    reliable: bool
    judged: list[JudgedParameter]
    inherited: JudgedParameter | None
    alike: list[tuple[str, str]]
    rest: list[str]


class TrendPoint(msgspec.Struct, frozen=True):
    """The median result of the trials near a place on an axis."""

    at: float
    median: float
    count: int


class Slice(msgspec.Struct, frozen=True):
    """One parameter against the result: ``at`` belongs to ``trials`` of the whole."""

    axis: Axis
    at: list[float | None]
    trend: list[TrendPoint]


class Slices(ResultPlot, frozen=True):
    """Some parameters, each against the result; ``rest`` are those left out."""

    chosen_by: str
    trials: list[int]
    values: list[float]
    best: int | None
    slices: list[Slice]
    rest: list[str]


class ContourLine(msgspec.Struct, frozen=True):
    """A line on which the mean result is ``level``."""

    level: float
    x: list[float]
    y: list[float]


class Contour(ResultPlot, frozen=True):
    """Two parameters, and the mean result of trials near each place.

    ``grid`` has a row for each of ``grid_y`` and a number for each of ``grid_x``; null where no
    trial is near. ``lines`` are there where both axes hold numbers.
    """

    chosen_by: str
    x: Axis | None
    y: Axis | None
    trials: list[int]
    values: list[float]
    at_x: list[float]
    at_y: list[float]
    grid_x: list[float]
    grid_y: list[float]
    grid: list[list[float | None]]
    lines: list[ContourLine]
    best: int | None


class Parallel(ResultPlot, frozen=True):
    """Trials as lines over axes: ``at`` has a list for each axis; ``rest`` was left out."""

    chosen_by: str
    axes: list[Axis]
    at: list[list[float | None]]
    trials: list[int]
    values: list[float]
    best: int | None
    rest: list[str]


class Objective(msgspec.Struct, frozen=True):
    """A number of the final result, and which way it is better."""

    name: str
    mode: OptimizeMode


class Front(Plot, frozen=True):
    """Trials that no other one beats in all objectives, the best by the first one first, and a
    part of the others. ``points`` has the numbers of each trial in the order of ``objectives``;
    the first ``front`` of them are the front, ``on_front`` counts all of it."""

    metrics: list[str]
    objectives: list[Objective]
    results: int
    on_front: int
    front: int
    trials: list[int]
    points: list[list[float]]


class Hypervolume(Plot, frozen=True):
    """How much of the space between ``reference`` and the best is reached by the front, over the
    results.

    Lists have an element for each result at which it grew: its trial, how many results there were
    within the bounds, seconds since the beginning, and the volume, a product of the objectives'
    units. ``results`` counts all that are within the bounds.
    """

    metrics: list[str]
    objectives: list[Objective]
    reference: list[float]
    results: int
    trials: list[int]
    counts: list[int]
    elapsed_s: list[float]
    volumes: list[float]


class ReasonSpan(msgspec.Struct, frozen=True):
    """A time in which one cause kept slots empty, with its sentence as of the beginning; cause
    ``ALL_SLOTS_BUSY``: none did, and ``NO_HEAD``: nobody led."""

    begin: float
    end: float
    cause: str
    text: str


class IdleShare(msgspec.Struct, frozen=True):
    """The share of all slots' time in which one cause kept them empty."""

    cause: str
    share: float


class Slots(Plot, frozen=True):
    """Busy slots and slots, the mean of each step of ``each_s`` seconds from ``begin`` on, and why
    no more were busy. ``busy_share`` and ``idle`` are of the time in which the search was not
    over; null if there was none."""

    begin: float
    until: float
    each_s: float
    busy: list[float]
    slots: list[float]
    busy_share: float | None
    idle: list[IdleShare]
    reasons: list[ReasonSpan]


class Lane(msgspec.Struct, frozen=True):
    """A slot of a worker, as far as trials that ran at the same time show it, and for how many
    seconds it was busy."""

    worker: str
    slot: int
    busy_s: float


class Timeline(Plot, frozen=True):
    """Attempts as bars from ``starts`` to ``ends`` (null: it runs) in lanes. ``earlier`` counts
    attempts that are left out. ``gpus`` has the ids that each attempt held, as far as they are
    known; it is empty where no trial asks for GPUs."""

    begin: float
    until: float
    lanes: list[Lane]
    trials: list[int]
    attempts: list[int]
    lane: list[int]
    starts: list[float]
    ends: list[float | None]
    outcomes: list[str]
    gpus: list[list[str]]
    earlier: int
