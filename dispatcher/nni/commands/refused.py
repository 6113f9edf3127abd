"""Commands of ``nnictl`` that are not here: each says why, and what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.errors import UserError

Rest = Annotated[
    list[str] | None,
    typer.Argument(metavar="ARG", help="All that follows; it is not read.", show_default=False),
]

_NO_FILES = (
    "annotated code is read at the start of an experiment, and no files are made of it before",
    "write 'useAnnotation: true' in the experiment file",
)

#: By command: the missing feature, and what to do instead.
REFUSED: dict[str, tuple[str, str]] = {
    "trial codegen": _NO_FILES,
    "experiment load": (
        "a copy needs no loading",
        "take it up where it lies: 'bequeath nni resume ID --experiment_dir DIR'",
    ),
    "webui url": (
        "an experiment has no page unless one asks for it",
        "'bequeath nni serve' shows NNI's, 'bequeath web' ours: both print the address",
    ),
    "webui nas": (
        "NNI's page has no view of architectures here",
        "'bequeath web' and 'bequeath lineage' show the inheritance tree",
    ),
    "tensorboard start": ("no TensorBoard is started", "run: bequeath tensorboard EXPERIMENT"),
    "tensorboard stop": ("no TensorBoard is started", "end it where you have started it"),
    "algo register": (
        "algorithms are not registered",
        "name the class in the file ('className' and 'codeDirectory'), or give your package an "
        "entry point: 'bequeath tuner new' explains both",
    ),
    "algo unregister": (
        "algorithms are not registered",
        "what a package brings goes with the package",
    ),
    "package install": (
        "no packages are installed",
        "'bequeath tuner list' shows which algorithms are here",
    ),
    "package uninstall": (
        "no packages are installed",
        "what a package brings goes with the package",
    ),
    "trainingservice register": (
        "training services are not registered",
        "a package that brings one names it by an entry point; then the file may",
    ),
    "trainingservice unregister": (
        "training services are not registered",
        "what a package brings goes with the package",
    ),
    "trainingservice list": (
        "training services are not registered",
        "'bequeath config schema' shows what a file may name",
    ),
    "platform clean": (
        "there is no platform to be cleaned",
        "'bequeath hosts tidy' removes the files that experiments have left on machines",
    ),
    "ss_gen": _NO_FILES,
    "jupyter-extension install": (
        "there is no page in JupyterLab",
        "use dispatcher.Experiment in a notebook: it draws progress and lineage",
    ),
    "jupyter-extension uninstall": ("there is no page in JupyterLab", "nothing is to be removed"),
    "hello": (
        "no example is written",
        "'bequeath tuner new' writes a tuner and a file to begin with",
    ),
}


def _refusing(command: str) -> Callable[[Rest], None]:
    what, instead = REFUSED[command]

    def refuse(arguments: Rest = None) -> None:
        raise UserError(what, hint=instead, where=f"nni {command}")

    refuse.__doc__ = f"Refused: {what}. Instead: {instead}."
    return refuse


def _group(name: str, also: Table | None = None) -> Table:
    table = {
        command.split()[1]: CommandEntry(
            f"nni.commands.refused:{command.replace(' ', '_')}", f"Refused: {what}.", lenient=True
        )
        for command, (what, _) in REFUSED.items()
        if command.split()[0] == name
    }
    return {**(also or {}), **table}


_KNOWN: Table = {
    "list": CommandEntry("cli.tuner:list_tuners", "Tuners and assessors that files may name."),
    "show": CommandEntry("cli.tuner:show", "One of them: arguments, search spaces, paper."),
}

WEBUI = _group("webui")
TENSORBOARD = _group("tensorboard")
ALGO = _group("algo", _KNOWN)
PACKAGE = _group("package", _KNOWN)
TRAININGSERVICE = _group("trainingservice")
PLATFORM = _group("platform")
JUPYTER = _group("jupyter-extension")

_NAMES = {command.replace(" ", "_"): command for command in REFUSED}


def __getattr__(name: str) -> Callable[[Rest], None]:
    """Return the function of a refused command, by the name in its entry."""
    if name not in _NAMES:
        raise AttributeError(name)
    return _refusing(_NAMES[name])
