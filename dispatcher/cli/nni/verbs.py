"""All verbs of ``nnictl``, with the line that lists them. Nothing here imports a command."""

from __future__ import annotations

from dispatcher.cli.lazy_group import CommandEntry, Table

_RUN, _LOOK, _NOT = "Run", "Look", "Refused, with what to do instead"

NNI: Table = {
    "create": CommandEntry("nni.create:create", "Start an experiment.", _RUN),
    "resume": CommandEntry(
        "nni.create:resume", "Take up a stopped, failed or killed experiment.", _RUN
    ),
    "stop": CommandEntry("nni.stop:stop", "Stop one experiment, or several.", _RUN),
    "update": CommandEntry("nni.update:UPDATE", "Change an experiment while it runs.", _RUN),
    "view": CommandEntry("nni.create:view", "How an experiment stands.", _LOOK),
    "trial": CommandEntry("nni.trial:TRIAL", "List and end trials.", _LOOK),
    "experiment": CommandEntry(
        "nni.experiment:EXPERIMENT", "List, show, export and delete.", _LOOK
    ),
    "config": CommandEntry("nni.experiment:CONFIG", "Print an experiment's settings.", _LOOK),
    "log": CommandEntry("nni.log:LOG", "What the experiment and its trials have printed.", _LOOK),
    "top": CommandEntry("nni.top:top", "Watch an experiment live.", _LOOK),
    "algo": CommandEntry("nni.refused:ALGO", "List algorithms; they are not registered.", _LOOK),
    "package": CommandEntry("nni.refused:PACKAGE", "The same, as v1 calls it.", _LOOK),
    "webui": CommandEntry("nni.refused:WEBUI", "There is no web page in this version.", _NOT),
    "tensorboard": CommandEntry("nni.refused:TENSORBOARD", "No TensorBoard is started.", _NOT),
    "trainingservice": CommandEntry(
        "nni.refused:TRAININGSERVICE", "They are not registered.", _NOT
    ),
    "platform": CommandEntry("nni.refused:PLATFORM", "There is no platform to be cleaned.", _NOT),
    "jupyter-extension": CommandEntry(
        "nni.refused:JUPYTER", "There is no page in JupyterLab.", _NOT
    ),
    "ss_gen": CommandEntry("nni.refused:ss_gen", "Annotated code is not read.", _NOT),
    "hello": CommandEntry("nni.refused:hello", "No example is written.", _NOT),
}
