"""All verbs of ``nnictl``, with the line that lists them. Nothing here imports a command."""

from __future__ import annotations

from dispatcher.cli.lazy_group import Entry, Table

_RUN, _LOOK, _NOT = "Run", "Look", "Refused, with what to do instead"

NNI: Table = {
    "create": Entry("nni.create:create", "Start an experiment.", _RUN),
    "resume": Entry("nni.create:resume", "Take up a stopped, failed or killed experiment.", _RUN),
    "stop": Entry("nni.stop:stop", "Stop one experiment, or several.", _RUN),
    "update": Entry("nni.update:UPDATE", "Change an experiment while it runs.", _RUN),
    "view": Entry("nni.create:view", "How an experiment stands.", _LOOK),
    "trial": Entry("nni.trial:TRIAL", "List and end trials.", _LOOK),
    "experiment": Entry("nni.experiment:EXPERIMENT", "List, show, export and delete.", _LOOK),
    "config": Entry("nni.experiment:CONFIG", "Print an experiment's settings.", _LOOK),
    "log": Entry("nni.log:LOG", "What the experiment and its trials have printed.", _LOOK),
    "top": Entry("nni.top:top", "Watch an experiment live.", _LOOK),
    "algo": Entry("nni.refused:ALGO", "List algorithms; they are not registered.", _LOOK),
    "package": Entry("nni.refused:PACKAGE", "The same, as v1 calls it.", _LOOK),
    "webui": Entry("nni.refused:WEBUI", "There is no web page in this version.", _NOT),
    "tensorboard": Entry("nni.refused:TENSORBOARD", "No TensorBoard is started.", _NOT),
    "trainingservice": Entry("nni.refused:TRAININGSERVICE", "They are not registered.", _NOT),
    "platform": Entry("nni.refused:PLATFORM", "There is no platform to be cleaned.", _NOT),
    "jupyter-extension": Entry("nni.refused:JUPYTER", "There is no page in JupyterLab.", _NOT),
    "ss_gen": Entry("nni.refused:ss_gen", "Annotated code is not read.", _NOT),
    "hello": Entry("nni.refused:hello", "No example is written.", _NOT),
}
