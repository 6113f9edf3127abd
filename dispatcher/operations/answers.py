"""Answers of operations: their fields are the JSON of ``--json`` and of routes, in this order.

Fields may be added; none goes or changes its meaning. Times are seconds since the epoch (UTC),
durations seconds, sizes bytes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dispatcher.control.snapshot import HeadSnapshot
from dispatcher.queries import (
    Attempt,
    Board,
    ExperimentListing,
    LineageNode,
    MetricPoint,
    OptimizeMode,
    TrialSummary,
    TrialThen,
    WrittenNote,
)


class OperationAnswer(msgspec.Struct, frozen=True):
    """Base of all answers."""


class ExperimentList(OperationAnswer, frozen=True):
    """Experiments, the newest first; ``others`` counts those of other users beside them."""

    experiments: list[ExperimentListing]
    others: int


class HeadNow(OperationAnswer, frozen=True):
    """The snapshot of a head; null while none answers."""

    experiment: str
    snapshot: HeadSnapshot | None


class Reason(OperationAnswer, frozen=True):
    """Why nothing, or not more, is running."""

    experiment: str
    cause: str
    text: str


class BestTrials(OperationAnswer, frozen=True):
    """The best trials, the best first; with several objectives the front. ``cells`` has a list for
    each trial, of the columns that were asked for; empty if none were."""

    experiment: str
    mode: OptimizeMode
    objectives: dict[str, OptimizeMode]
    trials: list[TrialSummary]
    cells: list[list[Any]] = []


class InheritanceTree(OperationAnswer, frozen=True):
    """Trials by number, with parents and children."""

    experiment: str
    mode: OptimizeMode
    nodes: dict[int, LineageNode]
    roots: tuple[int, ...]
    best: int | None
    best_path: tuple[int, ...]


class ResolvedSettings(OperationAnswer, frozen=True):
    """Settings, resolved and as they are now; secrets are masked."""

    experiment: str
    folder: str
    settings: dict[str, Any]


class StartedHead(OperationAnswer, frozen=True):
    """A head that was started in the background."""

    experiment: str
    folder: str
    pid: int


class Stopped(OperationAnswer, frozen=True):
    """A stop; ``kind`` is ``drain`` or ``now``, ``stopped`` whether it has come about. Without a
    head: what was cancelled at schedulers, and their troubles."""

    experiment: str
    kind: str
    stopped: bool
    allocations: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()


class Killed(OperationAnswer, frozen=True):
    """Processes that were ended, allocations that were cancelled, and schedulers' troubles."""

    experiment: str
    processes: list[int]
    allocations: tuple[str, ...]
    troubles: tuple[str, ...]


class Changed(OperationAnswer, frozen=True):
    """A change: at once if it runs. ``beyond`` counts the trials above a new limit that were
    proposed before, ``warning`` is what will be missed."""

    experiment: str
    key: str
    running: bool
    warning: str
    beyond: int


class Imported(OperationAnswer, frozen=True):
    """The number of results that were delivered."""

    experiment: str
    rows: int


class FetchedWorker(OperationAnswer, frozen=True):
    """Attempts that were dealt with, and the error that ended it early."""

    attempts: int
    error: str | None


class FetchedFiles(OperationAnswer, frozen=True):
    """The outcome of a fetch, by worker."""

    experiment: str
    workers: dict[str, FetchedWorker]


class Deleted(OperationAnswer, frozen=True):
    """The folder that is gone; what was cancelled at schedulers before, and their troubles."""

    experiment: str
    deleted: str
    allocations: tuple[str, ...]
    troubles: tuple[str, ...]


class Verified(OperationAnswer, frozen=True):
    """A check of a store against its journal."""

    experiment: str
    ok: bool
    events: int
    trials: int
    damage: list[str]
    broken_at: str
    differences: list[str]
    mended: str


class BackupMade(OperationAnswer, frozen=True):
    """A copy of an experiment."""

    experiment: str
    folder: str
    weights: int
    linked: bool
    gone: int
    unseen: str
    links: tuple[str, ...]


class CompactedStore(OperationAnswer, frozen=True):
    """A journal that was folded, if there was anything to fold."""

    experiment: str
    compacted: bool
    bytes_before: int
    bytes: int


class TrialList(OperationAnswer, frozen=True):
    """Trials in the order that was asked for. ``cells`` has a list for each trial, of the columns
    that were asked for; empty if none were."""

    experiment: str
    trials: list[TrialSummary]
    cells: list[list[Any]] = []


class SearchThen(OperationAnswer, frozen=True):
    """A search as it was at a moment: how many trials were where, the best until then, and the
    trials, the newest first. ``notes`` say what is not known (any more)."""

    experiment: str
    time: float
    began: float | None
    until: float | None
    states: dict[str, int]
    outcomes: dict[str, int]
    best: int | None
    trials: list[TrialThen]
    more: bool
    notes: tuple[str, ...]


class OneTrial(OperationAnswer, frozen=True):
    """All about one trial."""

    experiment: str
    trial: TrialSummary
    attempts: tuple[Attempt, ...]
    metrics: tuple[MetricPoint, ...]
    children: tuple[int, ...]
    notes: tuple[WrittenNote, ...] = ()


class KilledTrial(OperationAnswer, frozen=True):
    """One trial that was asked to end: its state now and before, and its outcome if it was over."""

    trial: int
    state: str
    before: str | None
    outcome: str | None


class KilledTrials(OperationAnswer, frozen=True):
    """Trials that were asked to end: their states by number, and each in full."""

    experiment: str
    trials: dict[int, str]
    answers: list[KilledTrial]


class SubmittedTrial(OperationAnswer, frozen=True):
    """The number of a trial by hand."""

    experiment: str
    trial: int


class Annotated(OperationAnswer, frozen=True):
    """Tags, star and notes of a trial, or with null in its place of the experiment."""

    experiment: str
    trial: int | None
    tags: tuple[str, ...]
    starred: bool
    notes: tuple[WrittenNote, ...]


class Leaderboard(OperationAnswer, frozen=True):
    """Boards of experiments that can be compared, in the order of their groups."""

    group: str
    boards: tuple[Board, ...]


class TrialFile(OperationAnswer, frozen=True):
    """A file of an attempt."""

    path: str
    kind: str
    size: int
    changed_at: float
    link: bool


class TrialFiles(OperationAnswer, frozen=True):
    """Files of an attempt; ``cut``: there are more than are looked at."""

    attempt: str
    place: str
    files: list[TrialFile]
    cut: bool


class TrialWeights(OperationAnswer, frozen=True):
    """Disk use of one trial's weights."""

    trial: int
    path: str
    own_bytes: int
    inherited_bytes: int
    files: int
    pinned: bool
    problem: str


class MeasuredWeights(OperationAnswer, frozen=True):
    """Disk use of all weights, and of shared stores by name."""

    experiment: str
    root: str
    trials: list[TrialWeights]
    total_bytes: int
    removed_bytes: int
    stores: dict[str, dict[str, Any]]
    unseen: str


class GoingWeights(OperationAnswer, frozen=True):
    """Weights that go, or would."""

    trial: int
    path: str
    bytes: int


class WeightsSwept(OperationAnswer, frozen=True):
    """A removal that was carried out (``done``), or a plan for one."""

    experiment: str
    done: bool
    weights: list[GoingWeights]
    files: int
    bytes: int
    shared: dict[str, list[str]]
    kept: dict[int, str]
    doubtful: dict[int, str]
    stores: dict[str, Any]
    unseen: str


class StoreVersion(OperationAnswer, frozen=True):
    """A version of a shared store, and why it stays."""

    store: str
    number: int
    trial: int
    attempt: int
    nbytes: int
    digest: str
    path: str
    needed: str


class SharedStore(OperationAnswer, frozen=True):
    """A shared store: how many versions it had in all, and those that are there."""

    published: int
    versions: list[StoreVersion]


class SharedStores(OperationAnswer, frozen=True):
    """Shared stores by name."""

    experiment: str
    stores: dict[str, SharedStore]


class Pinned(OperationAnswer, frozen=True):
    """Whether a trial's weights are kept whatever retention says."""

    experiment: str
    trial: int
    pinned: bool


class ExportedWeights(OperationAnswer, frozen=True):
    """A file of weights that was written."""

    experiment: str
    trial: int
    file: str
    tensors: int
    bytes: int


class ModelInput(OperationAnswer, frozen=True):
    """One field of a request; ``kind``: number, text, image or drawing."""

    name: str
    kind: str
    label: str
    default: int | float | str | None
    minimum: float | None
    maximum: float | None
    step: float | None
    width: int
    height: int


class ModelOffer(OperationAnswer, frozen=True):
    """Whether a trial's model can be asked, and if not, why. ``inputs``: the fields of a request;
    null where the trials' code does not declare them."""

    experiment: str
    trial: int
    available: bool
    why: str
    hint: str
    inputs: list[ModelInput] | None


class ModelAnswered(OperationAnswer, frozen=True):
    """The answer of a trained model. ``printed``: the end of what its code has printed;
    ``loaded_s``: 0 if the model was loaded already."""

    experiment: str
    trial: int
    answer: Any
    took_s: float
    loaded_s: float
    printed: str
