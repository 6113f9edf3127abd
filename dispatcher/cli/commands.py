"""All commands there are, with the line that lists them. Nothing here imports a command."""

from __future__ import annotations

from importlib.util import find_spec

from dispatcher.cli.lazy_group import CommandEntry, Table

_RUN, _LOOK, _PARTS, _SETUP = "Run", "Look", "Parts", "Set up"

_ALL: Table = {
    "run": CommandEntry(
        "cli.run:run",
        "Run an experiment file and show how it goes.",
        _RUN,
        arrange="cli.run:arranged",
    ),
    "create": CommandEntry("cli.run:create", "Start an experiment in the background.", _RUN),
    "stop": CommandEntry("cli.stop:stop", "Stop an experiment; it can be resumed.", _RUN),
    "kill": CommandEntry(
        "cli.stop:kill", "End an experiment's processes at once; it can be resumed.", _RUN
    ),
    "resume": CommandEntry(
        "cli.run:resume", "Take up a stopped, failed or killed experiment.", _RUN
    ),
    "lead": CommandEntry(
        "cli.lead:lead", "Begin an experiment, or go on with it, as jobs and pods do.", _RUN
    ),
    "status": CommandEntry("cli.status:status", "Show the state of an experiment.", _LOOK),
    "top": CommandEntry("cli.top:top", "Watch an experiment live.", _LOOK),
    "why": CommandEntry(
        "cli.status:why", "Explain in one sentence why nothing, or not more, is running.", _LOOK
    ),
    "best": CommandEntry("cli.best:best", "Show the best trials and their parameters.", _LOOK),
    "leaderboard": CommandEntry(
        "cli.leaderboard:leaderboard", "Compare the best trials of all experiments.", _LOOK
    ),
    "lineage": CommandEntry("cli.lineage:lineage", "Show inheritance as a tree.", _LOOK),
    "infer": CommandEntry("cli.infer:infer", "Ask a trial's trained model.", _LOOK),
    "plot": CommandEntry("cli.plot:PLOT", "Draw results, parameters or lineage as PNG.", _LOOK),
    "web": CommandEntry("cli.web:web", "Serve the page and the REST interface.", _LOOK),
    "tensorboard": CommandEntry(
        "cli.sink:tensorboard", "Show experiments in TensorBoard, whether or not they run.", _LOOK
    ),
    "sink": CommandEntry(
        "cli.sink:sink", "Put an experiment into a tracker, such as MLflow.", _PARTS
    ),
    "trial": CommandEntry(
        "cli.trial.verbs:TRIAL", "List, show, follow, end and submit trials.", _PARTS
    ),
    "experiment": CommandEntry(
        "cli.experiment.verbs:EXPERIMENT",
        "List, show, export, change and delete experiments.",
        _PARTS,
    ),
    "weights": CommandEntry(
        "cli.weights:WEIGHTS", "Export, measure, pin and clean up weights.", _PARTS
    ),
    "nni": CommandEntry(
        "nni.commands.verbs:NNI",
        "Run nnictl's commands under their own names.",
        _PARTS,
    ),
    "tuner": CommandEntry(
        "cli.tuner:TUNER", "List, explain, begin, check and replay tuners.", _PARTS
    ),
    "validate": CommandEntry(
        "cli.experiment_file:validate", "Check an experiment file; start nothing.", _SETUP
    ),
    "convert": CommandEntry(
        "cli.experiment_file:convert", "Print a file of other systems under our keys.", _SETUP
    ),
    "config": CommandEntry(
        "cli.experiment_file:CONFIG", "Print the schema or reference of experiment files.", _SETUP
    ),
    "doctor": CommandEntry(
        "cli.doctor:doctor", "Check this machine for what bequeath needs.", _SETUP
    ),
    "nfs": CommandEntry(
        "cli.nfs.verbs:NFS", "Set up an NFS share, measure it, and take it back.", _SETUP
    ),
    "hosts": CommandEntry(
        "cli.hosts.verbs:HOSTS",
        "Make machines known that are reached by SSH, and check them.",
        _SETUP,
    ),
    "kubernetes": CommandEntry(
        "cli.kubernetes.verbs:KUBERNETES", "Print what a cluster's administrators apply.", _SETUP
    ),
    "systemd-unit": CommandEntry(
        "cli.systemd_unit:systemd_unit", "Print a systemd unit that leads an experiment.", _SETUP
    ),
    "completion": CommandEntry(
        "cli.completion:completion", "Print a shell's completion script.", _SETUP
    ),
}


def _is_there(entry: CommandEntry) -> bool:
    """Whether a command's room is: some can be left out of an installation."""
    room = entry.home.partition(".")[0]
    return room == "cli" or find_spec(f"dispatcher.{room}") is not None


ROOT: Table = {name: entry for name, entry in _ALL.items() if _is_there(entry)}
