"""Every key of an experiment file, each read for itself.

Attributes are the keys of the file in snake_case; both spellings are read. Durations are
seconds (float), sizes are bytes (int). Nothing here looks at the disk: that the code
directory exists and the like is :mod:`dispatcher.experiment.checks`.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field

from dispatcher.experiment.algorithm import AssessorConfig, TunerConfig
from dispatcher.experiment.callbacks import CallbacksConfig
from dispatcher.experiment.failure_policy import (
    FAILED_IN_A_ROW,
    FAILED_PER_SLOT,
    FailurePolicy,
)
from dispatcher.experiment.fields import (
    Command,
    Count,
    CountOrZero,
    Duration,
    FunctionName,
    Grace,
    ResolvedPath,
    Size,
    Switch,
    Text,
    VariableName,
    VariableText,
    WithoutResult,
    choice_reader,
)
from dispatcher.experiment.needs import ExperimentNeeds, TrialNeeds, effective_needs
from dispatcher.experiment.objectives import Objectives
from dispatcher.experiment.programs import MetricsConfig, ParametersAs
from dispatcher.experiment.sections import (
    ChannelConfig,
    FetchConfig,
    LeasesConfig,
    LimitsConfig,
)
from dispatcher.experiment.service import PlannedWorker
from dispatcher.experiment.services import (
    Service,
    TrainingService,
    default_service,
    workers_of,
)
from dispatcher.experiment.sink_base import SinkConfig
from dispatcher.experiment.sink_kinds import Sinks
from dispatcher.experiment.stop_when import StopWhenConfig
from dispatcher.experiment.weights_place import WeightsPlace
from tuners.plain_json import plain
from tuners.space import as_json

OnTunerError = Literal["fail", "continue", "retry"]
OnStall = Literal["fail", "grow", "wait"]
Compatibility = Literal["none", "nni"]
OptimizeMode = Literal["maximize", "minimize"]
LogLevel = Literal["debug", "info", "warning", "error"]

MOST_NODES = 256
"""Nodes of one trial: all of them speak with its first, each second."""

LOOKAHEAD_PER_SLOT = 2
"""More blocked requests than this would be decided too early, on too little (DESIGN §1)."""
LOOKAHEAD_LEAST = 8
MOST_LOOKAHEAD = 20_000
"""Each blocked request is a thread; measured machines refuse the next one from 22,000 on."""
MOST_SLOTS = 99_999
"""NNI's bound: anything above is a slip of the finger."""

_LOG_LEVELS = choice_reader("debug", "info", "warning", "error")


def _check_name(name: str) -> str:
    if not name.isprintable():
        raise ValueError(f"holds characters that cannot be shown: {name!r}")
    return name


def _read_log_level(value: object) -> object:
    """Take NNI's two levels that we lack for their nearest neighbours."""
    neighbours = {"trace": "debug", "fatal": "error"}
    return neighbours.get(value.lower(), _LOG_LEVELS(value)) if isinstance(value, str) else value


class AllKeys(FailurePolicy, WeightsPlace, ExperimentNeeds):
    """Every key, and what follows from one alone. The field descriptions are the reference."""

    experiment_name: Annotated[
        Annotated[Text, Field(max_length=200), AfterValidator(_check_name)],
        Field(description="Name to show and to search by; the file's name if not given."),
    ] = "experiment"
    dataset: Annotated[
        Annotated[Text, Field(max_length=200), AfterValidator(_check_name)] | None,
        Field(
            description="Name of the data set that the search is about, by which `bequeath "
            "leaderboard` groups experiments. A tag `dataset:NAME` of the experiment stands above "
            "it."
        ),
    ] = None
    search_space: Annotated[
        Annotated[dict[str, Any], BeforeValidator(as_json), AfterValidator(plain)],
        Field(
            description="Values to choose from, in short forms or in NNI's JSON types. See "
            "[search spaces](search-spaces.md). Excludes `searchSpaceFile`."
        ),
    ] = Field(default_factory=dict)
    search_space_file: Annotated[
        ResolvedPath | None, Field(description="YAML or JSON file that holds the search space.")
    ] = None
    tuner: Annotated[TunerConfig, Field(description="The tuner, which proposes the trials.")]
    assessor: Annotated[
        AssessorConfig | None,
        Field(description="The assessor, which may stop trials early; none if not given."),
    ] = None
    optimize_mode: Annotated[
        Annotated[OptimizeMode, BeforeValidator(choice_reader("maximize", "minimize"))] | None,
        Field(
            description="Direction of the search; the tuner's `optimize_mode` if it has one, "
            "else `maximize`."
        ),
    ] = None
    objectives: Objectives = Field(default_factory=dict)
    seed: Annotated[
        CountOrZero | None,
        Field(description="Seed of everything random; drawn and recorded if not given."),
    ] = None

    trial_command: Annotated[
        Command | None,
        Field(
            description="Command of a trial, run by `bash -c`. `${trialParameters.NAME}` in it "
            "stands for a parameter. Excludes `trialFunction`."
        ),
    ] = None
    trial_function: Annotated[
        FunctionName | None,
        Field(
            description="Function that a trial calls, as `module:function`. Excludes "
            "`trialCommand`.",
            json_schema_extra={"examples": ["train:main"]},
        ),
    ] = None
    trial_code_directory: Annotated[
        ResolvedPath, Field(description="Folder in which trials run and from which they import.")
    ] = Path(".")
    use_annotation: Annotated[
        Switch,
        Field(
            description="Read the search space from NNI's annotations in the trial's code "
            "(`@nni.variable` and others), and run a copy of the code in which they have become "
            "calls. Excludes `searchSpace` and `searchSpaceFile`."
        ),
    ] = False
    trial_environment: Annotated[
        dict[VariableName, VariableText],
        Field(
            description="Environment variables of trials. `env:NAME` and `file:PATH` are "
            "references, resolved when a trial starts and never stored; `literal:` in front "
            "keeps such a text as it is. `${trialParameters.NAME}` stands for a parameter."
        ),
    ] = Field(default_factory=dict)
    parameters_as: Annotated[
        ParametersAs,
        Field(
            description="How a program gets all parameters without our library, one way or a list: "
            "`arguments` (`--name=value`, behind the command), `environment` "
            "(`BEQUEATH_PARAMETER_NAME`), `file` (JSON, which `BEQUEATH_PARAMETERS` names). See "
            "[programs of others](programs-of-others.md)."
        ),
    ] = ()
    metrics: Annotated[
        MetricsConfig | None,
        Field(
            description="The results of a program that imports nothing of ours, and their place. "
            "See [programs of others](programs-of-others.md)."
        ),
    ] = None
    trial_nodes: Annotated[
        Count,
        Field(
            le=MOST_NODES,
            description="Nodes of one trial, each of which runs it with the variables of torchrun; "
            "rank 0 reports and saves. More than one need a platform whose allocations may have "
            "several.",
        ),
    ] = 1
    max_trial_duration: Annotated[
        Duration | None,
        Field(description="Time after which a trial is stopped as timed out; none if not given."),
    ] = None
    trial_stop_grace: Annotated[
        Grace, Field(description="Time between asking a trial to stop and ending it.")
    ] = 10.0
    on_trial_without_result: Annotated[
        WithoutResult,
        Field(
            description="When a trial exits with 0 and reported no final result: `ignore` (the "
            "tuner hears of its end only), `fail`, or the number to take instead."
        ),
    ] = "ignore"
    max_log_size: Annotated[
        Size, Field(description="Size at which a log file of an attempt is rotated.")
    ] = 64 << 20
    max_log_files: Annotated[
        Count, Field(description="Rotated log files kept per attempt and stream.")
    ] = 2

    trial_concurrency: Annotated[
        Count, Field(le=MOST_SLOTS, description="Slots: trials that run at once.")
    ]
    lookahead: Annotated[
        Annotated[CountOrZero, Field(le=MOST_LOOKAHEAD)] | None,
        Field(
            description="Requests that may be blocked waiting for a parent; the larger of 8 and "
            "twice `trialConcurrency` if not given. Where it is not given, code written for NNI "
            "is asked as NNI asks: for another trial when one is over, `trialConcurrency` at "
            "once, and for more only if all of these wait."
        ),
    ] = None
    max_trial_number: Annotated[
        Count | None,
        Field(description="Trials, not attempts, after which no more are asked for."),
    ] = None
    max_experiment_duration: Annotated[
        Duration | None,
        Field(description="Time after which no new trials are asked for; running ones go on."),
    ] = None
    stop_when: Annotated[
        StopWhenConfig,
        Field(
            description="Results, or a time of trials, with which the search is over: "
            "`{target: 0.95, noProgress: 50, trialTime: 12h}`. See [ends](ends.md)."
        ),
    ] = Field(default_factory=StopWhenConfig)

    compatibility: Annotated[
        Annotated[Compatibility, BeforeValidator(choice_reader("none", "nni"))],
        Field(
            description="`nni`: tuner and trials are written for NNI and may import `nni`, metrics "
            "may be any JSON value, and without a `weightsRoot` paths of weights are theirs "
            "alone. See [from NNI](from-nni.md)."
        ),
    ] = "none"
    multi_thread: Annotated[
        Switch,
        Field(
            description="Whether `generate_parameters` may overlap with itself and all else; "
            "with `false` a tuner is called serially and cannot wait for a parent."
        ),
    ] = True
    on_tuner_error: Annotated[
        Annotated[OnTunerError, BeforeValidator(choice_reader("fail", "continue", "retry"))],
        Field(
            description="After an exception in the tuner: `fail` the experiment, `continue` "
            "without that request, or `retry` the request."
        ),
    ] = "fail"
    on_stall: Annotated[
        Annotated[OnStall, BeforeValidator(choice_reader("fail", "grow", "wait"))],
        Field(
            description="When nothing can go on: `fail` with a report of which trial waits for "
            "which, `grow` the lookahead step by step, or `wait`."
        ),
    ] = "fail"
    stall_timeout: Annotated[
        Duration,
        Field(
            description="Time without progress after which foreign waits are called a stall. A "
            "drain ends, too, when the tuner has stood still for so long before it takes a "
            "result, or has taken none for twelve times as long; what was not delivered is "
            "delivered after a resume."
        ),
    ] = 300.0

    training_service: Annotated[
        TrainingService,
        Field(
            description="Places where trials run, and how; a list of services runs them on all of "
            "these together."
        ),
    ] = Field(default_factory=default_service)
    head_grace: Annotated[
        Grace,
        Field(description="Time that trials go on without a head, so that `resume` finds them."),
    ] = 120.0
    fetch: Annotated[
        FetchConfig,
        Field(
            description="Files of trials on other machines that are fetched when the trials end; "
            "`never` may be written in place of the section."
        ),
    ] = Field(default_factory=FetchConfig)
    channel: Annotated[
        ChannelConfig, Field(description="Connection between the processes of an experiment.")
    ] = Field(default_factory=ChannelConfig)
    leases: Annotated[
        LeasesConfig, Field(description="Times after which a silent peer is suspect, and lost.")
    ] = Field(default_factory=LeasesConfig)
    limits: Annotated[
        LimitsConfig, Field(description="Bounds at which bequeath refuses with a reason.")
    ] = Field(default_factory=LimitsConfig)

    sinks: Annotated[
        Sinks,
        Field(
            description="Trackers that are fed while the experiment runs, such as TensorBoard: "
            "see [sinks](sinks.md)."
        ),
    ] = ()
    callbacks: Annotated[
        CallbacksConfig | None,
        Field(
            description="Functions and commands that are called when a trial has ended, at a new "
            "best one, and at the end: see [callbacks](ends.md#callbacks)."
        ),
    ] = None
    experiment_working_directory: Annotated[
        ResolvedPath, Field(description="Folder that holds a folder for each experiment.")
    ] = Path("~/bequeath-experiments")
    share_with: Annotated[
        Annotated[
            Literal["nobody", "group", "all"],
            BeforeValidator(choice_reader("nobody", "group", "all")),
        ],
        Field(
            description="Other users who may look at the experiment: `nobody`, the folder's "
            "`group`, or `all` users. They see its folder and store, and its settings with "
            "secrets masked; other files have the modes that your umask gives them."
        ),
    ] = "nobody"
    log_level: Annotated[
        Annotated[LogLevel, BeforeValidator(_read_log_level)],
        Field(description="How much the head and the tuner host log."),
    ] = "info"
    debug: Annotated[
        Switch, Field(description="Check all invariants after each event; log in full.")
    ] = False

    @property
    def for_nni(self) -> bool:
        """Whether the experiment's code is written for NNI."""
        return self.compatibility == "nni"

    @property
    def fed(self) -> tuple[SinkConfig, ...]:
        """All that is fed from the store: the sinks, and the callbacks if there are any."""
        own = self.callbacks
        return self.sinks if own is None or not own.given else (*self.sinks, own)

    @property
    def keeps_weights(self) -> bool:
        """Whether paths of weights in parameters are ours to confine, digest and keep."""
        return not self.for_nni or self.weights_root is not None

    @property
    def effective_lookahead(self) -> int:
        """Requests that may be blocked, whether or not the file says so."""
        if self.lookahead is not None:
            return self.lookahead
        if self.for_nni and not self.multi_thread:
            return self.trial_concurrency  # a thread that waits serves no further request
        return max(LOOKAHEAD_LEAST, LOOKAHEAD_PER_SLOT * self.trial_concurrency)

    @property
    def asks_at_most(self) -> int:
        """Requests between asked for and delivered, as in NNI; 0: no bound but the lookahead."""
        return self.trial_concurrency if self.for_nni and self.lookahead is None else 0

    @property
    def effective_max_failed_in_a_row(self) -> int:
        """Failed trials in a row that end the experiment, whether or not the file says so."""
        if self.max_failed_trials_in_a_row is not None:
            return self.max_failed_trials_in_a_row
        return max(FAILED_IN_A_ROW, FAILED_PER_SLOT * self.trial_concurrency)

    @property
    def services(self) -> tuple[Service, ...]:
        """The training services, one or several."""
        one_or_several = self.training_service
        return one_or_several if isinstance(one_or_several, tuple) else (one_or_several,)

    @property
    def trial_needs(self) -> TrialNeeds:
        """The resources that each trial takes, wherever the file gives them."""
        return effective_needs(self, self.training_service)

    @cached_property
    def workers(self) -> tuple[tuple[Service, PlannedWorker], ...]:
        """Workers with their services: the same file always gives the same names. Kept, since each
        of a thousand workers asks how many there are."""
        return tuple(workers_of(self.services, self.usual_slots))

    def __copy__(self) -> Self:
        """A copy, whose workers are listed anew: what is copied is about to be changed."""
        copied = super().__copy__()
        copied.__dict__.pop("workers", None)
        return copied

    @property
    def usual_slots(self) -> int:
        """Slots of a worker whose section says nothing: one trial takes all nodes of a place."""
        return 1 if self.trial_nodes > 1 else self.trial_concurrency

    @property
    def slots(self) -> int:
        """Trials that run at once: the smaller of the concurrency and the hosts' slots."""
        offered = sum(worker.slots for _, worker in self.workers)
        return min(self.trial_concurrency, offered)
