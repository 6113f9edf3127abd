"""``bequeath run``: an experiment from its file to its end, in the foreground."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dispatcher.cli.arguments import ExperimentFile, Json
from dispatcher.terminal.console import note

if TYPE_CHECKING:
    from dispatcher.experiment import ExperimentConfig

_SCRIPT = ".py"

#: Options whose next argument is their value, and no file.
_TAKING = (["--set"], ["--name"], ["--chaos"], ["--chaos-every"])

Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Replace a value of the file: trialConcurrency, maxTrialNumber, "
        "maxExperimentDuration, lookahead or searchSpace. May be repeated.",
        show_default=False,
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--name", metavar="NAME", help="Replace the experiment's name.", show_default=False
    ),
]


ScriptArguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ARG",
        help="Arguments of a script: all that follows it, options as well.",
        show_default=False,
    ),
]


def run(
    file: ExperimentFile,
    arguments: ScriptArguments = None,
    changes: Changes = None,
    name: Name = None,
    as_json: Json = False,
    chaos: Annotated[
        int | None,
        typer.Option(
            "--chaos",
            metavar="SEED",
            help="A test tool: kill, stop and delay the experiment's own processes, its head as "
            "well, by the schedule of this seed. Give it many retries.",
            show_default=False,
        ),
    ] = None,
    chaos_every: Annotated[
        float,
        typer.Option(
            "--chaos-every",
            metavar="SECONDS",
            help="Mean time between two acts of --chaos.",
            min=0.05,
        ),
    ] = 1.0,
) -> None:
    """Run an experiment file and show how it goes, or a script that starts one by NNI's API.

    Ctrl-C once lets running trials finish and starts no new ones; twice stops them at once.
    Either way `bequeath resume` goes on from there. Progress goes to stderr, the result to
    stdout. A file that ends in `.py` is run as a script, in which `nni.experiment` is ours;
    what follows it is for the script.
    """
    if file.suffix == _SCRIPT:
        from dispatcher.experiment.dialects import first_dialect

        if changes or name is not None or as_json or chaos is not None:
            raise typer.BadParameter(
                "a script takes its own options only, and they follow it", param_hint="'FILE'"
            )
        first_dialect("scripts").run_script(file, arguments or [])
        return
    if arguments:
        raise typer.BadParameter(
            f"an experiment file takes no arguments: {' '.join(arguments)}", param_hint="'ARG'"
        )
    begin_here(configured(file, changes or [], name), as_json, chaos, chaos_every)


def _arranged(arguments: list[str]) -> list[str]:
    """Put ``--`` after a script, so that all that follows is passed to the script."""
    for place, word in enumerate(arguments):
        if word == "--":
            break
        if word.endswith(_SCRIPT) and arguments[place - 1 : place] not in _TAKING:
            return [*arguments[: place + 1], "--", *arguments[place + 1 :]]
    return arguments


run.arranged = _arranged  # type: ignore[attr-defined]


def begin_here(
    config: ExperimentConfig,
    as_json: bool = False,
    chaos: int | None = None,
    chaos_every: float = 1.0,
) -> None:
    """Make an experiment's folder and lead it in this terminal, to its end.

    Args:
        config: the experiment.
        as_json: print the outcome as one JSON document.
        chaos: seed of the schedule of faults; None: no faults.
        chaos_every: mean time between two faults, in seconds.
    """
    from dispatcher.experiments.handle import ExperimentHandle

    folder = ExperimentHandle.create(config).folder
    note(f"experiment {folder.name} in {folder}")
    if chaos is not None:
        from dispatcher.cli.chaos import lead_under_chaos

        lead_under_chaos(folder, chaos, chaos_every, as_json=as_json)
        return
    from dispatcher.cli.foreground import lead

    lead(folder, config.experiment_name, as_json=as_json)


def configured(file: Path, changes: list[str], name: str | None) -> ExperimentConfig:
    """Read an experiment file and apply the changes of the command line.

    Args:
        file: the experiment file.
        changes: texts ``KEY=VALUE``.
        name: the experiment's name; None: that of the file.

    Raises:
        ExperimentFileErrors: the file or a change is wrong.
    """
    from dispatcher.experiment import load_experiment
    from dispatcher.experiment.updates import apply_update, renamed
    from dispatcher.experiments import known_folders

    def remark(text: str) -> None:
        note(f"{file}: {text}")

    config = known_folders.with_default_folder(load_experiment(file, remark))
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals:
            raise typer.BadParameter(f"{change!r} is not KEY=VALUE", param_hint="'--set'")
        config = apply_update(config, key.strip(), value)
    if name is not None:
        config = renamed(config, name)
    return config
