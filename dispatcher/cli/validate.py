"""``bequeath validate``: is this an experiment file, and what would it do?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dispatcher.cli.arguments import ExperimentFile, Json
from dispatcher.cli.failure import report
from dispatcher.terminal.console import print_facts, print_json, say
from dispatcher.terminal.formatting import duration

if TYPE_CHECKING:
    from dispatcher.experiment import ExperimentConfig

_SHOWN = 5


def validate(file: ExperimentFile, as_json: Json = False) -> None:
    """Check an experiment file and everything it names; start nothing, import nothing.

    All errors are shown in one run, each with file, line and column. Exit code 3 if there
    are any.
    """
    import typer

    from dispatcher.experiment import ExperimentFileErrors, load_experiment
    from dispatcher.experiments.known_folders import with_default_folder

    try:
        config = with_default_folder(load_experiment(file))
    except ExperimentFileErrors as error:
        if as_json:
            print_json(
                {
                    "valid": False,
                    "file": str(file),
                    "errors": [
                        {"where": e.where, "message": e.message, "hint": e.hint}
                        for e in error.errors
                    ],
                }
            )
            raise typer.Exit(error.exit_code) from error
        raise typer.Exit(report(error)) from error
    if as_json:
        print_json({"valid": True, "file": str(file), "experiment": _resolved(config)})
        return
    say(f"{file} is fine.")
    print_facts(_summary(config, file))


def _resolved(config: ExperimentConfig) -> object:
    from dispatcher.experiment.snapshot import to_shown

    return to_shown(config)


def _summary(config: ExperimentConfig, file: Path) -> list[tuple[str, str]]:
    tuner = config.tuner.name or config.tuner.class_name or ""
    trial = config.trial_command or config.trial_function or ""
    trials = "no limit" if config.max_trial_number is None else str(config.max_trial_number)
    time = config.max_experiment_duration
    waiting = f"{config.effective_lookahead} requests may wait"
    if config.asks_at_most:
        waiting = "asked for as NNI asks: one when another is over"
    return [
        ("name", config.experiment_name),
        ("tuner", f"{tuner}, {config.optimize_mode}"),
        ("search space", ", ".join(config.search_space) or "none"),
        ("trial", trial),
        ("code", str(config.trial_code_directory)),
        *_not_sent(config),
        ("at once", f"{config.slots}, {waiting}"),
        ("trials", trials + (f", for at most {duration(time)}" if time else "")),
        ("weights", str(config.weights_root or "in the experiment's folder")),
        ("kept below", str(config.experiment_working_directory)),
    ]


def _not_sent(config: ExperimentConfig) -> list[tuple[str, str]]:
    """Return the line on files of the code that are not sent to machines; empty without any."""
    from dispatcher.experiment.checks import secrets_not_sent

    names = secrets_not_sent(config)
    if not names:
        return []
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    which = ", ".join(names[:_SHOWN]) + more
    return [("not sent", f"{which}: likely secrets; '!NAME' in .bequeathignore sends one")]
