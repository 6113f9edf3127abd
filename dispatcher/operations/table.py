"""All operations. Nothing else holds a list of what can be asked of experiments, or done to them.

What has no row here does not answer with a document: `create`, `run`, `lead` take a file of this
machine, `trial log` is a stream, `trial shell` a terminal.
"""

from __future__ import annotations

from typing import Any, Final

from dispatcher.errors import UserError
from dispatcher.experiments.find import Purpose
from dispatcher.experiments.standing import Standing
from dispatcher.operations import answers, tensor_answers
from dispatcher.operations import arguments as given
from dispatcher.operations.operation import A, NoChoice, Operation, R, Scope, Subject
from dispatcher.plots import shapes

_PATH: Final = "it takes a path of this machine, which no route does"
_ONE: Final = "/experiments/{experiment}"
_TRIAL: Final = "/experiments/{experiment}/trials/{trial}"

EXPERIMENT_LIST: Final = Operation(
    "experiment list", "List all experiments that are kept, the newest first.",
    Subject.MACHINE, Scope.READ, Purpose.READ, given.ListExperiments, answers.ExperimentList,
    "looking:experiments", ("experiment list",),
    route="GET /experiments", repeatable=True,
)  # fmt: skip

LEADERBOARD: Final = Operation(
    "leaderboard", "Compare the best trials of all experiments, in groups.",
    Subject.MACHINE, Scope.READ, Purpose.READ, given.ArrangeBoard, answers.Leaderboard,
    "looking:leaderboard", ("leaderboard",),
    route="GET /leaderboard", repeatable=True,
)  # fmt: skip

STATUS: Final = Operation(
    "status", "Show how an experiment stands, by its store and by its head.",
    Subject.EXPERIMENT, Scope.READ, Purpose.READ, NoChoice, Standing,
    "looking:status", ("status",), "Experiment.status",
    route=f"GET {_ONE}", repeatable=True,
)  # fmt: skip

TOP: Final = Operation(
    "top", "Show the snapshot of a running head.",
    Subject.EXPERIMENT, Scope.READ, Purpose.USE, NoChoice, answers.HeadNow,
    "looking:head", ("top",),
    route=f"GET {_ONE}/head", repeatable=True,
)  # fmt: skip

WHY: Final = Operation(
    "why", "Explain in one sentence why nothing, or not more, is running.",
    Subject.EXPERIMENT, Scope.READ, Purpose.READ, NoChoice, answers.Reason,
    "looking:why", ("why",), "Experiment.why",
    route=f"GET {_ONE}/why", repeatable=True,
)  # fmt: skip

BEST: Final = Operation(
    "best", "List the best trials; of several objectives the front.",
    Subject.EXPERIMENT, Scope.READ, Purpose.READ, given.ListBest, answers.BestTrials,
    "looking:best", ("best",), "Experiment.leaders",
    route=f"GET {_ONE}/best", repeatable=True,
)  # fmt: skip

LINEAGE: Final = Operation(
    "lineage", "Show the inheritance tree.",
    Subject.EXPERIMENT, Scope.READ, Purpose.READ, given.ChooseRoot, answers.InheritanceTree,
    "looking:lineage", ("lineage",), "Experiment.lineage",
    route=f"GET {_ONE}/lineage", repeatable=True,
)  # fmt: skip

PLOT: Final[Operation[given.DrawPicture, bytes]] = Operation(
    "plot", "Draw a picture as PNG.",
    Subject.EXPERIMENT, Scope.READ, Purpose.READ, given.DrawPicture, bytes,
    "looking:picture",
    (
        "plot progress", "plot parallel", "plot lineage", "plot importance", "plot slice",
        "plot contour", "plot pareto", "plot timeline", "plot slots", "plot hypervolume",
    ),
    "Experiment.plot",
    route=f"GET {_ONE}/pictures/{{kind}}", repeatable=True,
)  # fmt: skip


def _computed(
    kind: str, summary: str, arguments: type[A], answer: type[R], act: str
) -> Operation[A, R]:
    """The row of a plot whose numbers are asked for."""
    return Operation(
        f"plot {kind}", summary,
        Subject.EXPERIMENT, Scope.READ, Purpose.READ, arguments, answer,
        f"plots:{act}", (f"plot {kind}",),
        route=f"GET {_ONE}/plots/{kind}", repeatable=True,
    )  # fmt: skip


PLOT_IMPORTANCE: Final = _computed(
    "importance", "Judge by permutation which parameters results depend on.",
    given.ChooseMetric, shapes.Importance, "importance",
)  # fmt: skip
PLOT_SLICE: Final = _computed(
    "slice", "Show results over each of some parameters.",
    given.ChooseParameters, shapes.Slices, "slices",
)  # fmt: skip
PLOT_CONTOUR: Final = _computed(
    "contour", "Show the mean result over two parameters.",
    given.ChoosePair, shapes.Contour, "contour",
)  # fmt: skip
PLOT_PARALLEL: Final = _computed(
    "parallel", "Show trials over the axes of the most important parameters.",
    given.ChooseParameters, shapes.Parallel, "parallel",
)  # fmt: skip
PLOT_PARETO: Final = _computed(
    "pareto", "Show the Pareto front of several objectives, and what it beats.",
    given.ChooseObjectives, shapes.Front, "pareto",
)  # fmt: skip
PLOT_HYPERVOLUME: Final = _computed(
    "hypervolume", "Show how the hypervolume of several objectives grew.",
    given.ChooseReference, shapes.Hypervolume, "hypervolume",
)  # fmt: skip
PLOT_TIMELINE: Final = _computed(
    "timeline", "Show which slot of which worker had which attempt, and when.",
    given.ChooseWorker, shapes.Timeline, "timeline",
)  # fmt: skip
PLOT_SLOTS: Final = _computed(
    "slots", "Show how many slots were busy over time, and why no more were.",
    given.ChooseSpan, shapes.Slots, "slots",
)  # fmt: skip

EXPERIMENT_SHOW: Final = Operation(
    "experiment show", "Show the settings of an experiment as they are now.",
    Subject.EXPERIMENT, Scope.READ, Purpose.READ, NoChoice, answers.ResolvedSettings,
    "looking:settings", ("experiment show",),
    route=f"GET {_ONE}/settings", repeatable=True,
)  # fmt: skip

EXPERIMENT_AT: Final = Operation(
    "experiment at", "Show a search as it was at a moment.",
    Subject.EXPERIMENT, Scope.READ, Purpose.READ, given.LookBack, answers.SearchThen,
    "looking:then", ("experiment at",),
    route=f"GET {_ONE}/at", repeatable=True,
)  # fmt: skip

EXPERIMENT_EXPORT: Final[Operation[NoChoice, list[dict[str, Any]]]] = Operation(
    "experiment export", "List all trials as flat objects.",
    Subject.EXPERIMENT, Scope.READ, Purpose.READ, NoChoice, list[dict[str, Any]],
    "looking:rows", ("experiment export",), "Experiment.rows",
    route=f"GET {_ONE}/export.json", repeatable=True,
)  # fmt: skip

EXPERIMENT_CSV: Final[Operation[NoChoice, str]] = Operation(
    "experiment csv", "Write all trials as CSV.",
    Subject.EXPERIMENT, Scope.READ, Purpose.READ, NoChoice, str,
    "looking:table", ("experiment export",),
    route=f"GET {_ONE}/export.csv", repeatable=True,
)  # fmt: skip

RESUME: Final = Operation(
    "resume", "Take up an experiment that does not run, in the background.",
    Subject.EXPERIMENT, Scope.CHANGE, Purpose.RESUME, NoChoice, answers.StartedHead,
    "changing:resume", ("resume",), "Experiment.start",
    route=f"POST {_ONE}/resume",
)  # fmt: skip

TAKE_OVER: Final = Operation(
    "take over", "Lead an experiment with a new head, even if one leads it already.",
    Subject.EXPERIMENT, Scope.CHANGE, Purpose.CHANGE, NoChoice, answers.StartedHead,
    "changing:take_over", ("resume",), "Experiment.start",
    route=f"POST {_ONE}/take-over",
)  # fmt: skip

STOP: Final = Operation(
    "stop", "Stop an experiment; it can be resumed.",
    Subject.EXPERIMENT, Scope.CHANGE, Purpose.RUNNING, given.StopExperiment, answers.Stopped,
    "changing:stop", ("stop",), "Experiment.stop",
    route=f"POST {_ONE}/stop", repeatable=True,
)  # fmt: skip

KILL: Final = Operation(
    "kill", "End an experiment's processes at once; it can be resumed.",
    Subject.EXPERIMENT, Scope.CHANGE, Purpose.CHANGE, NoChoice, answers.Killed,
    "changing:kill", ("kill",), "Experiment.kill",
    route=f"POST {_ONE}/kill", repeatable=True,
)  # fmt: skip

EXPERIMENT_UPDATE: Final = Operation(
    "experiment update", "Change a limit or the search space.",
    Subject.EXPERIMENT, Scope.CHANGE, Purpose.CHANGE, given.UpdateExperiment, answers.Changed,
    "changing:update", ("experiment update",), "Experiment.update",
    route=f"PATCH {_ONE}", repeatable=True,
)  # fmt: skip

EXPERIMENT_IMPORT: Final = Operation(
    "experiment import", "Give the tuner the results of another experiment.",
    Subject.EXPERIMENT, Scope.CHANGE, Purpose.RUNNING, given.ImportResults, answers.Imported,
    "changing:import_results", ("experiment import",),
    route=f"POST {_ONE}/imports",
)  # fmt: skip

EXPERIMENT_FETCH: Final = Operation(
    "experiment fetch", "Fetch the files of trials on other machines.",
    Subject.EXPERIMENT, Scope.CHANGE, Purpose.USE, NoChoice, answers.FetchedFiles,
    "changing:fetch", ("experiment fetch",),
    route=f"POST {_ONE}/fetch", repeatable=True,
)  # fmt: skip

EXPERIMENT_DELETE: Final = Operation(
    "experiment delete", "Delete an experiment with logs and weights.",
    Subject.EXPERIMENT, Scope.CHANGE, Purpose.DAMAGED, NoChoice, answers.Deleted,
    "changing:delete", ("experiment delete",),
    route=f"DELETE {_ONE}", repeatable=True,
)  # fmt: skip

EXPERIMENT_VERIFY: Final = Operation(
    "experiment verify", "Check the store against its own journal.",
    Subject.EXPERIMENT, Scope.CHANGE, Purpose.DAMAGED, given.VerifyStore, answers.Verified,
    "changing:verify", ("experiment verify",),
    route=f"POST {_ONE}/verify", repeatable=True,
)  # fmt: skip

EXPERIMENT_COMPACT: Final = Operation(
    "experiment compact", "Make an experiment's journal shorter.",
    Subject.EXPERIMENT, Scope.CHANGE, Purpose.DAMAGED, NoChoice, answers.CompactedStore,
    "changing:compact", ("experiment compact",),
    route=f"POST {_ONE}/compact", repeatable=True,
)  # fmt: skip

EXPERIMENT_BACKUP: Final = Operation(
    "experiment backup", "Copy an experiment, also while it runs.",
    Subject.EXPERIMENT, Scope.CHANGE, Purpose.DAMAGED, given.BackUp, answers.BackupMade,
    "changing:back_up", ("experiment backup",), why_not=_PATH,
)  # fmt: skip

EXPERIMENT_NOTE: Final = Operation(
    "experiment note", "Write a note beside an experiment.",
    Subject.EXPERIMENT, Scope.CHANGE, Purpose.CHANGE, given.WriteNote, answers.Annotated,
    "annotating:note", ("experiment note",),
    route=f"POST {_ONE}/notes",
)  # fmt: skip

EXPERIMENT_NOTE_REMOVE: Final = Operation(
    "experiment note remove", "Take a note beside an experiment away.",
    Subject.EXPERIMENT, Scope.CHANGE, Purpose.CHANGE, given.RemoveNote, answers.Annotated,
    "annotating:remove_note", ("experiment note",),
    route=f"DELETE {_ONE}/notes/{{number}}", repeatable=True,
)  # fmt: skip

EXPERIMENT_TAG: Final = Operation(
    "experiment tag", "Give an experiment tags, or take them away.",
    Subject.EXPERIMENT, Scope.CHANGE, Purpose.CHANGE, given.ChangeTags, answers.Annotated,
    "annotating:tag", ("experiment tag",),
    route=f"PATCH {_ONE}/tags", repeatable=True,
)  # fmt: skip

EXPERIMENT_STAR: Final = Operation(
    "experiment star", "Give an experiment a star.",
    Subject.EXPERIMENT, Scope.CHANGE, Purpose.CHANGE, NoChoice, answers.Annotated,
    "annotating:star", ("experiment star",),
    route=f"PUT {_ONE}/star", repeatable=True,
)  # fmt: skip

EXPERIMENT_UNSTAR: Final = Operation(
    "experiment unstar", "Take an experiment's star away.",
    Subject.EXPERIMENT, Scope.CHANGE, Purpose.CHANGE, NoChoice, answers.Annotated,
    "annotating:unstar", ("experiment star",),
    route=f"DELETE {_ONE}/star", repeatable=True,
)  # fmt: skip

TRIAL_LIST: Final = Operation(
    "trial ls", "List trials.",
    Subject.EXPERIMENT, Scope.READ, Purpose.READ, given.ListTrials, answers.TrialList,
    "trials:ls", ("trial ls",), "Experiment.trials",
    route=f"GET {_ONE}/trials", repeatable=True,
)  # fmt: skip

TRIAL_SHOW: Final = Operation(
    "trial show", "Show everything about one trial.",
    Subject.TRIAL, Scope.READ, Purpose.READ, NoChoice, answers.OneTrial,
    "trials:show", ("trial show",), "Experiment.trial",
    route=f"GET {_TRIAL}", repeatable=True,
)  # fmt: skip

TRIAL_FILES: Final = Operation(
    "trial files", "List the files that a trial has left, wherever it ran.",
    Subject.TRIAL, Scope.LOGS, Purpose.READ, given.ListFiles, answers.TrialFiles,
    "trials:files", ("trial files",),
    route=f"GET {_TRIAL}/files", repeatable=True,
)  # fmt: skip

TRIAL_TENSORS: Final = Operation(
    "trial tensors", "Show which tensors of a trial's weights came from whom.",
    Subject.TRIAL, Scope.READ, Purpose.READ, given.ListTensors, tensor_answers.TrialTensors,
    "weights:tensors", ("trial tensors",),
    route=f"GET {_TRIAL}/tensors", repeatable=True,
)  # fmt: skip

TRIAL_KILL: Final = Operation(
    "trial kill", "End running or waiting trials.",
    Subject.EXPERIMENT, Scope.CHANGE, Purpose.RUNNING, given.KillTrials, answers.KilledTrials,
    "trials:kill", ("trial kill",), "Experiment.stop_trial",
    route=f"POST {_ONE}/trials/kill", repeatable=True,
)  # fmt: skip

TRIAL_SUBMIT: Final = Operation(
    "trial submit", "Run a trial with parameters of your own.",
    Subject.EXPERIMENT, Scope.CHANGE, Purpose.RUNNING, given.SubmitTrial, answers.SubmittedTrial,
    "trials:submit", ("trial submit",), "Experiment.submit",
    route=f"POST {_ONE}/trials",
)  # fmt: skip

TRIAL_NOTE: Final = Operation(
    "trial note", "Write a note beside a trial.",
    Subject.TRIAL, Scope.CHANGE, Purpose.USE, given.WriteNote, answers.Annotated,
    "annotating:note", ("trial note",),
    route=f"POST {_TRIAL}/notes",
)  # fmt: skip

TRIAL_NOTE_REMOVE: Final = Operation(
    "trial note remove", "Take a note beside a trial away.",
    Subject.TRIAL, Scope.CHANGE, Purpose.USE, given.RemoveNote, answers.Annotated,
    "annotating:remove_note", ("trial note",),
    route=f"DELETE {_TRIAL}/notes/{{number}}", repeatable=True,
)  # fmt: skip

TRIAL_TAG: Final = Operation(
    "trial tag", "Give a trial tags, or take them away.",
    Subject.TRIAL, Scope.CHANGE, Purpose.USE, given.ChangeTags, answers.Annotated,
    "annotating:tag", ("trial tag",),
    route=f"PATCH {_TRIAL}/tags", repeatable=True,
)  # fmt: skip

TRIAL_STAR: Final = Operation(
    "trial star", "Give a trial a star.",
    Subject.TRIAL, Scope.CHANGE, Purpose.USE, NoChoice, answers.Annotated,
    "annotating:star", ("trial star",),
    route=f"PUT {_TRIAL}/star", repeatable=True,
)  # fmt: skip

TRIAL_UNSTAR: Final = Operation(
    "trial unstar", "Take a trial's star away.",
    Subject.TRIAL, Scope.CHANGE, Purpose.USE, NoChoice, answers.Annotated,
    "annotating:unstar", ("trial star",),
    route=f"DELETE {_TRIAL}/star", repeatable=True,
)  # fmt: skip

WEIGHTS_DU: Final = Operation(
    "weights du", "Show what the weights take on disk, trial by trial.",
    Subject.EXPERIMENT, Scope.READ, Purpose.USE, NoChoice, answers.MeasuredWeights,
    "weights:use", ("weights du",),
    route=f"GET {_ONE}/weights", repeatable=True,
)  # fmt: skip

WEIGHTS_PLAN: Final = Operation(
    "weights plan", "Show which weights a clean-up would remove.",
    Subject.EXPERIMENT, Scope.READ, Purpose.USE, given.SweepWeights, answers.WeightsSwept,
    "weights:plan", ("weights gc",),
    route=f"GET {_ONE}/weights/plan", repeatable=True,
)  # fmt: skip

WEIGHTS_GC: Final = Operation(
    "weights gc", "Remove weights that nothing needs.",
    Subject.EXPERIMENT, Scope.CHANGE, Purpose.CHANGE, given.SweepWeights, answers.WeightsSwept,
    "weights:sweep", ("weights gc",),
    route=f"POST {_ONE}/weights/gc", repeatable=True,
)  # fmt: skip

WEIGHTS_VERSIONS: Final = Operation(
    "weights versions", "List the versions of shared stores that are there.",
    Subject.EXPERIMENT, Scope.READ, Purpose.USE, given.ListVersions, answers.SharedStores,
    "weights:versions", ("weights versions",),
    route=f"GET {_ONE}/weights/versions", repeatable=True,
)  # fmt: skip

WEIGHTS_PIN: Final = Operation(
    "weights pin", "Keep a trial's weights whatever retention says.",
    Subject.TRIAL, Scope.CHANGE, Purpose.USE, given.PinWeights, answers.Pinned,
    "weights:pin", ("weights pin",),
    route=f"PUT {_TRIAL}/pin", repeatable=True,
)  # fmt: skip

WEIGHTS_UNPIN: Final = Operation(
    "weights unpin", "Let retention decide on a trial's weights again.",
    Subject.TRIAL, Scope.CHANGE, Purpose.USE, NoChoice, answers.Pinned,
    "weights:unpin", ("weights unpin",),
    route=f"DELETE {_TRIAL}/pin", repeatable=True,
)  # fmt: skip

WEIGHTS_EXPORT: Final = Operation(
    "weights export", "Write a trial's weights into one file.",
    Subject.TRIAL, Scope.CHANGE, Purpose.USE, given.ExportWeights, answers.ExportedWeights,
    "weights:export", ("weights export",), why_not=_PATH,
)  # fmt: skip

INFER_INPUTS: Final = Operation(
    "infer inputs", "Show what a request to a trial's trained model holds.",
    Subject.TRIAL, Scope.READ, Purpose.READ, NoChoice, answers.ModelOffer,
    "inference:inputs", ("trial inputs",),
    route=f"GET {_TRIAL}/infer", repeatable=True,
)  # fmt: skip

INFER: Final = Operation(
    "infer", "Ask a trial's trained model; it runs the trial's code.",
    Subject.TRIAL, Scope.CHANGE, Purpose.USE, given.AskModel, answers.ModelAnswered,
    "inference:infer", ("infer",),
    route=f"POST {_TRIAL}/infer",
)  # fmt: skip

#: By name, in the order in which they are described.
OPERATIONS: Final[dict[str, Operation[Any, Any]]] = {
    each.name: each for each in list(globals().values()) if isinstance(each, Operation)
}


def operation(name: str) -> Operation[Any, Any]:
    """Return the operation of a name. Raises ``UserError``."""
    try:
        return OPERATIONS[name]
    except KeyError:
        text = f"there is no operation {name!r}"
        raise UserError(text, hint=f"one of {', '.join(OPERATIONS)}") from None
