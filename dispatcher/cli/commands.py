"""All commands there are, with the line that lists them. Nothing here imports a command."""

from __future__ import annotations

from dispatcher.cli.lazy_group import CommandEntry, Table

_RUN, _LOOK, _PARTS, _SETUP = "Run", "Look", "Parts", "Set up"

ROOT: Table = {
    "run": CommandEntry("run:run", "Run an experiment file and show how it goes.", _RUN),
    "create": CommandEntry("create:create", "Start an experiment in the background.", _RUN),
    "stop": CommandEntry("stop:stop", "Stop an experiment; it can be resumed.", _RUN),
    "kill": CommandEntry(
        "stop:kill", "End an experiment's processes at once; it can be resumed.", _RUN
    ),
    "resume": CommandEntry(
        "resume:resume", "Take up a stopped, failed or killed experiment.", _RUN
    ),
    "status": CommandEntry("status:status", "How an experiment stands.", _LOOK),
    "top": CommandEntry("top:top", "Watch an experiment live.", _LOOK),
    "why": CommandEntry("why:why", "Why nothing, or not more, is running: one sentence.", _LOOK),
    "best": CommandEntry("best:best", "The best trials and their parameters.", _LOOK),
    "lineage": CommandEntry("lineage:lineage", "Who inherited from whom, as a tree.", _LOOK),
    "plot": CommandEntry("plot:PLOT", "Draw progress, parameters or lineage as PNG.", _LOOK),
    "trial": CommandEntry(
        "trial.verbs:TRIAL", "List, show, follow, end and submit trials.", _PARTS
    ),
    "experiment": CommandEntry(
        "experiment.verbs:EXPERIMENT", "List, show, export, change and delete experiments.", _PARTS
    ),
    "weights": CommandEntry(
        "weights:WEIGHTS", "Export, measure, pin and clean up weights.", _PARTS
    ),
    "nni": CommandEntry(
        "nni.verbs:NNI", "The words of nnictl, for fingers that know them.", _PARTS
    ),
    "tuner": CommandEntry("tuner:TUNER", "List, explain, begin, check and replay tuners.", _PARTS),
    "validate": CommandEntry(
        "validate:validate", "Check an experiment file; start nothing.", _SETUP
    ),
    "convert": CommandEntry(
        "convert:convert", "Print a file written for NNI under our keys.", _SETUP
    ),
    "config": CommandEntry(
        "config:CONFIG", "Print the schema or reference of experiment files.", _SETUP
    ),
    "doctor": CommandEntry("doctor:doctor", "Check this machine for what bequeath needs.", _SETUP),
    "nfs": CommandEntry(
        "nfs.verbs:NFS", "Set up an NFS share, measure it, and take it back.", _SETUP
    ),
    "hosts": CommandEntry(
        "hosts.verbs:HOSTS", "Make machines known that are reached by SSH, and check them.", _SETUP
    ),
    "systemd-unit": CommandEntry(
        "systemd_unit:systemd_unit", "Print a systemd unit that leads an experiment.", _SETUP
    ),
    "completion": CommandEntry(
        "completion:completion", "Print a shell's completion script.", _SETUP
    ),
}
