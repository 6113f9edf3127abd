"""Arguments of operations, with their bounds: the same for command line, Python and routes."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from dispatcher.control.bounds import MAX_GRACE_S
from dispatcher.operations.operation import Arguments

#: A text that is kept on record.
_Text = Annotated[str, Meta(max_length=2_000)]
#: Seconds since the epoch, in some thousand years.
MOST_TIME: Final = 1e11

_Number = Annotated[int, Meta(ge=0)]
_Count = Annotated[int, Meta(ge=1)]


class ListExperiments(Arguments, frozen=True):
    """Choice of experiments."""

    everywhere: Annotated[bool, Meta(description="Those outside of BEQUEATH_HOME, too.")] = False


_Where = Annotated[
    str, Meta(description="Only trials for which this condition holds: lr<0.01 and depth=3.")
]
_Columns = Annotated[
    str,
    Meta(
        description="Columns and parameters, as in conditions, with commas between them: `cells` "
        "of the answer has them."
    ),
]


class ListBest(Arguments, frozen=True):
    """Choice of the best trials."""

    limit: Annotated[
        _Count | None, Meta(description="At most so many; 5, or the whole front, if not given.")
    ] = None
    where: _Where = ""
    columns: _Columns = ""


class ChooseRoot(Arguments, frozen=True):
    """Choice of a part of the inheritance tree."""

    root: Annotated[_Number | None, Meta(description="Only this trial and its descendants.")] = None


_Name = Annotated[str, Meta(max_length=200)]
_Names = Annotated[tuple[_Name, ...], Meta(max_length=40)]

_Metric = Annotated[
    _Name, Meta(description="A number in the final result; default: that of comparisons.")
]
_Mode = Annotated[
    Literal["", "maximize", "minimize"],
    Meta(description="Which way it is better; as the experiment says if empty."),
]
_Seed = Annotated[
    Annotated[int, Meta(ge=0, lt=1 << 32)],
    Meta(description="Of the importance by which parameters are chosen."),
]
_Parameters = Annotated[
    _Names, Meta(description="Parameters by name; the most important ones if empty.")
]
_Many = Annotated[Annotated[int, Meta(ge=1, le=40)] | None, Meta(description="Parameters at most.")]
_X = Annotated[_Name, Meta(description="A parameter; an important one if empty.")]
_Y = Annotated[_Name, Meta(description="Another one.")]
_Objectives = Annotated[
    _Names,
    Meta(description="Numbers in the result, as loss:minimize; the experiment's own if empty."),
]
_Reference = Annotated[
    _Names,
    Meta(
        description="Where the hypervolume begins, as latency:50; the bounds or the worst results, "
        "if empty."
    ),
]
_Worker = Annotated[_Name | None, Meta(description="Only the slots of this worker.")]
_Last = Annotated[
    Annotated[float, Meta(ge=10, le=604_800)],
    Meta(description="Seconds up to the end of the search, or up to now, that are shown."),
]


class ChooseMetric(Arguments, frozen=True):
    """Choice of the result that parameters are held against."""

    metric: _Metric = "default"
    mode: _Mode = ""
    seed: _Seed = 0


class ChooseParameters(ChooseMetric, frozen=True):
    """Choice of the parameters of a plot."""

    parameters: _Parameters = ()
    many: _Many = None


class ChoosePair(ChooseMetric, frozen=True):
    """Choice of two parameters."""

    x: _X = ""
    y: _Y = ""


class ChooseObjectives(Arguments, frozen=True):
    """Choice of several objectives."""

    objectives: _Objectives = ()


class ChooseReference(ChooseObjectives, frozen=True):
    """Choice of several objectives, and of where their hypervolume begins."""

    reference: _Reference = ()


class ChooseWorker(Arguments, frozen=True):
    """Choice of a worker."""

    worker: _Worker = None


class ChooseSpan(Arguments, frozen=True):
    """Choice of the time that is shown."""

    last: _Last = 3_600.0


class DrawPicture(ChooseParameters, frozen=True):
    """Choice of a picture. What its kind does not take has no effect."""

    kind: Annotated[
        Literal[
            "progress", "parallel", "lineage", "importance", "slice", "contour", "pareto",
            "timeline", "slots", "hypervolume",
        ],
        Meta(description="The kind of picture."),
    ] = "progress"  # fmt: skip
    root: Annotated[
        _Number | None, Meta(description="Of the lineage: only this trial and its descendants.")
    ] = None
    x: _X = ""
    y: _Y = ""
    objectives: _Objectives = ()
    reference: _Reference = ()
    worker: _Worker = None
    last: _Last = 3_600.0


class ListTrials(Arguments, frozen=True):
    """Choice of trials, and their order."""

    state: Annotated[
        tuple[str, ...], Meta(description="States or outcomes; all if empty.", max_length=20)
    ] = ()
    failed: Annotated[bool, Meta(description="Only trials that failed.")] = False
    live: Annotated[bool, Meta(description="Only trials that are not over.")] = False
    parent: Annotated[_Number | None, Meta(description="Only children of this trial.")] = None
    where: _Where = ""
    columns: _Columns = ""
    sort: Annotated[
        str,
        Meta(
            description="id, value, state, started, ended, duration, or a column or parameter as "
            "in conditions."
        ),
    ] = "id"
    reverse: Annotated[bool, Meta(description="The other way round.")] = False
    limit: Annotated[_Count | None, Meta(description="At most so many.")] = None


class ListFiles(Arguments, frozen=True):
    """Choice of an attempt's files."""

    attempt: Annotated[_Count | None, Meta(description="The newest if not given.")] = None
    links: Annotated[bool, Meta(description="Links, too.")] = False


class StopExperiment(Arguments, frozen=True):
    """How an experiment is stopped."""

    drain: Annotated[bool, Meta(description="Let running trials finish.")] = False
    grace_s: Annotated[
        Annotated[float, Meta(ge=0, le=MAX_GRACE_S)] | None,
        Meta(description="Seconds between asking trials to stop and ending them."),
    ] = None
    wait: Annotated[bool, Meta(description="Answer when it has stopped.")] = False
    reason: Annotated[_Text, Meta(description="For the record.")] = ""


class UpdateExperiment(Arguments, frozen=True):
    """A change of a limit or of the search space."""

    key: Annotated[
        str,
        Meta(
            description="trialConcurrency, maxTrialNumber, maxExperimentDuration, stopWhen, "
            "lookahead or searchSpace.",
            max_length=100,
        ),
    ]
    value: Annotated[Any, Meta(description="As in the experiment file.")]


class ImportResults(Arguments, frozen=True):
    """Results of another experiment."""

    rows: Annotated[list[dict[str, Any]], Meta(description="Objects with `parameter` and `value`.")]


class VerifyStore(Arguments, frozen=True):
    """How a store is checked."""

    rebuild: Annotated[bool, Meta(description="Make the tables again first.")] = False


class BackUp(Arguments, frozen=True):
    """The target of a backup."""

    destination: Annotated[str, Meta(description="A folder of this machine.")]
    weights: Annotated[bool, Meta(description="Take the committed weights along.")] = False


class KillTrials(Arguments, frozen=True):
    """Trials that shall end."""

    trials: Annotated[list[_Number], Meta(description="Their numbers.", max_length=10_000)]


class SubmitTrial(Arguments, frozen=True):
    """A trial by hand."""

    parameters: Annotated[dict[str, Any], Meta(description="All that the trial gets.")]


class SweepWeights(Arguments, frozen=True):
    """A policy by which weights are removed."""

    keep: Annotated[
        str,
        Meta(
            description="all, best:N, last-generations:N or ancestors-of-live; the file's if "
            "empty.",
            max_length=100,
        ),
    ] = ""
    keep_versions: Annotated[
        _Number, Meta(description="The newest versions of each store stay; 0: the file's number.")
    ] = 0


class ListVersions(Arguments, frozen=True):
    """Choice of shared stores."""

    store: Annotated[str | None, Meta(description="Only this one.")] = None


class PinWeights(Arguments, frozen=True):
    """Why weights are kept."""

    note: Annotated[_Text, Meta(description="The reason, kept with the pin.")] = ""


class WriteNote(Arguments, frozen=True):
    """A note."""

    text: Annotated[_Text, Meta(description="Plain text of at most 2,000 characters.")]


class RemoveNote(Arguments, frozen=True):
    """Choice of a note."""

    number: Annotated[_Count, Meta(description="The number of the note.")]


_Tags = Annotated[tuple[Annotated[str, Meta(max_length=64)], ...], Meta(max_length=50)]


class ChangeTags(Arguments, frozen=True):
    """Tags that are given and taken away; others stay."""

    add: Annotated[_Tags, Meta(description="Tags to give: a letter, then letters and digits.")] = ()
    remove: Annotated[_Tags, Meta(description="Tags to take away, if they are there.")] = ()


class ArrangeBoard(Arguments, frozen=True):
    """Choice of experiments, and of the boards."""

    group: Annotated[
        Literal["dataset", "tuner", "tag", "name", "none"],
        Meta(description="The thing that experiments of one board have in common."),
    ] = "dataset"
    dataset: Annotated[str, Meta(description="Only of this data set.", max_length=200)] = ""
    tuner: Annotated[str, Meta(description="Only of this tuner.", max_length=200)] = ""
    tag: Annotated[str, Meta(description="Only those with this tag.", max_length=64)] = ""
    name: Annotated[
        str, Meta(description="Only those with this in their name or id.", max_length=200)
    ] = ""
    starred: Annotated[bool, Meta(description="Only those with a star.")] = False
    everywhere: Annotated[bool, Meta(description="Those outside of BEQUEATH_HOME, too.")] = False
    limit: Annotated[_Count | None, Meta(description="Experiments of each board, at most.")] = None


class ListTensors(Arguments, frozen=True):
    """How many tensors are listed one by one."""

    limit: Annotated[
        Annotated[int, Meta(ge=0, le=10_000)], Meta(description="Tensors at most; groups are all.")
    ] = 1_000


class LookBack(Arguments, frozen=True):
    """The moment that is looked back at."""

    time: Annotated[
        Annotated[float, Meta(ge=0, le=MOST_TIME)], Meta(description="Seconds since the epoch.")
    ]
    limit: Annotated[
        Annotated[int, Meta(ge=0, le=10_000)], Meta(description="Trials at most, the newest first.")
    ] = 1_000


class ExportWeights(Arguments, frozen=True):
    """The target of an export."""

    file: Annotated[str, Meta(description="A file of this machine, replaced if it exists.")]
    key: Annotated[str, Meta(description="Only this part of the saved state.")] = ""


class AskModel(Arguments, frozen=True):
    """A request to a trained model."""

    request: Annotated[
        dict[str, Any],
        Meta(description="What `infer` gets; an image file is an object with its `base64`."),
    ]
    timeout_s: Annotated[
        float, Meta(description="Seconds for the answer, without loading.", gt=0, le=300)
    ] = 30.0
