"""All verbs of ``nnictl``, with the line that lists them. Nothing here imports a command."""

from __future__ import annotations

from dispatcher.cli.lazy_group import CommandEntry, Table

_RUN, _LOOK, _NOT = "Run", "Look", "Refused, with what to do instead"

NNI: Table = {
    "create": CommandEntry("nni.commands.create:create", "Start an experiment.", _RUN),
    "resume": CommandEntry(
        "nni.commands.create:resume",
        "Take up a stopped, failed or killed experiment.",
        _RUN,
    ),
    "stop": CommandEntry("nni.commands.changing:stop", "Stop one experiment, or several.", _RUN),
    "update": CommandEntry(
        "nni.commands.changing:UPDATE", "Change a limit or the search space.", _RUN
    ),
    "view": CommandEntry("nni.commands.create:view", "Show the state of an experiment.", _LOOK),
    "serve": CommandEntry(
        "nni.commands.serve:serve", "Answer NNI's REST, and show NNI's own page.", _LOOK
    ),
    "trial": CommandEntry("nni.commands.changing:TRIAL", "List and end trials.", _LOOK),
    "experiment": CommandEntry(
        "nni.commands.experiment:EXPERIMENT", "List, show, export and delete.", _LOOK
    ),
    "config": CommandEntry(
        "nni.commands.experiment:CONFIG", "Print an experiment's settings.", _LOOK
    ),
    "log": CommandEntry(
        "nni.commands.log:LOG", "What the experiment and its trials have printed.", _LOOK
    ),
    "top": CommandEntry("nni.commands.changing:top", "Watch an experiment live.", _LOOK),
    "algo": CommandEntry(
        "nni.commands.refused:ALGO", "List algorithms; they are not registered.", _LOOK
    ),
    "package": CommandEntry("nni.commands.refused:PACKAGE", "The same, as v1 calls it.", _LOOK),
    "webui": CommandEntry("nni.commands.refused:WEBUI", "Where the page is.", _NOT),
    "tensorboard": CommandEntry(
        "nni.commands.refused:TENSORBOARD", "No TensorBoard is started.", _NOT
    ),
    "trainingservice": CommandEntry(
        "nni.commands.refused:TRAININGSERVICE", "They are not registered.", _NOT
    ),
    "platform": CommandEntry(
        "nni.commands.refused:PLATFORM", "There is no platform to be cleaned.", _NOT
    ),
    "jupyter-extension": CommandEntry(
        "nni.commands.refused:JUPYTER", "There is no page in JupyterLab.", _NOT
    ),
    "ss_gen": CommandEntry(
        "nni.commands.refused:ss_gen", "Annotated code is read at the start.", _NOT, lenient=True
    ),
    "hello": CommandEntry(
        "nni.commands.refused:hello", "No example is written.", _NOT, lenient=True
    ),
}
