"""All commands there are, with the line that lists them. Nothing here imports a command."""

from __future__ import annotations

from dispatcher.cli.lazy_group import Entry, Table

_RUN, _LOOK, _PARTS, _SETUP = "Run", "Look", "Parts", "Set up"

ROOT: Table = {
    "run": Entry("run:run", "Run an experiment file and show how it goes.", _RUN),
    "create": Entry("create:create", "Start an experiment in the background.", _RUN),
    "stop": Entry("stop:stop", "Stop an experiment; it can be resumed.", _RUN),
    "kill": Entry("stop:kill", "End an experiment's processes at once; it can be resumed.", _RUN),
    "resume": Entry("resume:resume", "Take up a stopped, failed or killed experiment.", _RUN),
    "status": Entry("status:status", "How an experiment stands.", _LOOK),
    "top": Entry("top:top", "Watch an experiment live.", _LOOK),
    "why": Entry("why:why", "Why nothing, or not more, is running: one sentence.", _LOOK),
    "best": Entry("best:best", "The best trials and their parameters.", _LOOK),
    "lineage": Entry("lineage:lineage", "Who inherited from whom, as a tree.", _LOOK),
    "plot": Entry("plot:PLOT", "Draw progress, parameters or lineage as PNG.", _LOOK),
    "trial": Entry("trial.verbs:TRIAL", "List, show, follow, end and submit trials.", _PARTS),
    "experiment": Entry(
        "experiment.verbs:EXPERIMENT", "List, show, export, change and delete experiments.", _PARTS
    ),
    "weights": Entry("weights:WEIGHTS", "Export, measure, pin and clean up weights.", _PARTS),
    "nni": Entry("nni.verbs:NNI", "The words of nnictl, for fingers that know them.", _PARTS),
    "tuner": Entry("tuner:TUNER", "List, explain, begin, check and replay tuners.", _PARTS),
    "validate": Entry("validate:validate", "Check an experiment file; start nothing.", _SETUP),
    "convert": Entry("convert:convert", "Print a file written for NNI under our keys.", _SETUP),
    "config": Entry("config:CONFIG", "Print the schema or reference of experiment files.", _SETUP),
    "doctor": Entry("doctor:doctor", "Check this machine for what bequeath needs.", _SETUP),
    "nfs": Entry("nfs.verbs:NFS", "Set up an NFS share, measure it, and take it back.", _SETUP),
    "hosts": Entry(
        "hosts.verbs:HOSTS", "Make machines known that are reached by SSH, and check them.", _SETUP
    ),
    "systemd-unit": Entry(
        "systemd_unit:systemd_unit", "Print a systemd unit that leads an experiment.", _SETUP
    ),
    "completion": Entry("completion:completion", "Print a shell's completion script.", _SETUP),
}
