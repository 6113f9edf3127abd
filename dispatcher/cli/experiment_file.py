"""``bequeath validate``, ``convert`` and ``config``: experiment files, and what they may say."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dispatcher.cli.arguments import ExperimentFile, Json
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.cli.failure import report
from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.errors import UserError
from dispatcher.findings import Finding, Severity
from dispatcher.terminal.console import note, pass_on, print_facts, print_json, say
from dispatcher.terminal.formatting import duration
from dispatcher.text_width import some_of
from tuners.space.model import CONSTRAINTS

if TYPE_CHECKING:
    from dispatcher.experiment import ExperimentConfig
    from dispatcher.experiment.file_places import FilePlaces

CONFIG: Table = {
    "schema": CommandEntry(
        "cli.experiment_file:schema", "Print the JSON Schema of experiment files, for editors."
    ),
    "reference": CommandEntry(
        "cli.experiment_file:reference", "Print every key with its type, default and meaning."
    ),
}

Target = Annotated[
    str, typer.Option("--to", metavar="FORM", help="Form to convert to; there is 'native' only.")
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write there instead of printing; an existing file is not overwritten.",
        show_default=False,
    ),
]

Connect = Annotated[bool, typer.Option("--connect", help="Ask schedulers and machines, too.")]

#: Names of files that are not sent, in one line.
_SHOWN = 5


def validate(file: ExperimentFile, connect: Connect = False, as_json: Json = False) -> None:
    """Check an experiment file and everything it names; start nothing, import nothing.

    All errors are shown in one run, each with file, line and column. Exit code 3 if there
    are any. With `--connect`, the schedulers and machines that it names are asked, too, whether
    trials could run there, schedulers for one short job that looks; what is wrong has file, line
    and column of its key. Exit code 1 if one has a problem.
    """
    from dispatcher.experiment import ExperimentFileErrors
    from dispatcher.experiment.loader import load_with_places
    from dispatcher.experiments.known_folders import with_default_folder

    try:
        config, places = load_with_places(file)
        config = with_default_folder(config)
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
    answers = _asked(config, places) if connect else []
    bad = any(finding.severity is Severity.PROBLEM for _, finding, _ in answers)
    if as_json:
        shown = {"valid": True, "file": str(file), "experiment": _resolved(config)}
        rows = [{"service": name, "where": at} | x.to_json("level") for name, x, at in answers]
        print_json(shown | ({"findings": rows} if connect else {}))
    else:
        say(f"{file} holds, and what it names has problems." if bad else f"{file} is fine.")
        print_facts(_summary(config, file))
        for name, finding, at in answers:
            hint = f" ({finding.hint})" if finding.hint else ""
            text = f"{finding.topic}: {finding.text}{hint}"
            say(f"{f'{at}: ' * bool(at)}{name}: {finding.severity.value}: {text}")
    if bad:
        raise typer.Exit(ExitCode.GENERAL)


def _asked(config: ExperimentConfig, places: FilePlaces) -> list[tuple[str, Finding, str]]:
    """Ask the schedulers and machines that the file names; returns findings with the name of their
    service or machine, and the place of the key that is at fault."""
    from dispatcher.cli.hosts.check_targets import look_at_all, targets_of
    from dispatcher.platforms.finding_places import place_of

    with ExitStack() as closing:
        targets = targets_of(config, closing)
        answers = look_at_all(targets)
    return [
        (target.host.name, each, place_of(each, places, target.at))
        for target, findings in zip(targets, answers, strict=True)
        for each in findings
    ]


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
        ("search space", _parameters(config) or "none"),
        ("trial", trial),
        ("code", str(config.trial_code_directory)),
        *_not_sent(config),
        ("at once", f"{config.slots}, {waiting}"),
        *_filled(config),
        ("trials", trials + (f", for at most {duration(time)}" if time else "")),
        *_ends(config),
        ("weights", str(config.weights_root or "in the experiment's folder")),
        ("kept below", str(config.experiment_working_directory)),
    ]


def _ends(config: ExperimentConfig) -> list[tuple[str, str]]:
    """Return the line on what ends the search before that; empty without any."""
    given, found = config.stop_when, []
    if given.target is not None:
        of = "" if given.objective is None else f" of {given.objective}"
        found.append(f"{given.target:g}{of} is reached")
    if given.no_progress is not None:
        found.append(f"{given.no_progress.trials} trials bring no progress")
    if given.trial_time is not None:
        found.append(f"all trials have taken {duration(given.trial_time)}")
    return [("stops when", ", or ".join(found))] if found else []


def _parameters(config: ExperimentConfig) -> str:
    return ", ".join(name for name in config.search_space if name != CONSTRAINTS)


def _filled(config: ExperimentConfig) -> list[tuple[str, str]]:
    """Return the line on the order of places; empty where there is one kind of them."""
    from dispatcher.wiring.filling import filling_order, has_an_order

    order = filling_order(config)
    if len(order) < 2:
        return []
    if has_an_order(order):
        return [("filled first", ", then ".join(map(str, order)))]
    return [("filled", f"{', '.join(map(str, order))}: none before another, by 'cost'")]


def _not_sent(config: ExperimentConfig) -> list[tuple[str, str]]:
    """Return the line on files of the code that are not sent to machines; empty without any."""
    from dispatcher.experiment.checks import secrets_not_sent

    names = secrets_not_sent(config)
    if not names:
        return []
    which = some_of(names, _SHOWN)
    return [("not sent", f"{which}: likely secrets; '!NAME' in .bequeathignore sends one")]


def convert(file: ExperimentFile, to: Target = "native", output: Output = None) -> None:
    """Print an experiment file of NNI, Katib, AI Platform or Vertex AI under bequeath's own keys.

    A comment above each key says where it comes from and why. The original needs no
    converting: `bequeath run` takes it as it is. Exit code 3 if it has errors.
    """
    from dispatcher.experiment.loader import converted

    if to != "native":
        raise typer.BadParameter(f"{to!r} is not known; there is 'native'", param_hint="'--to'")
    text = converted(file)
    if text is None:
        note(f"{file} has bequeath's own keys already")
        return
    if output is None:
        pass_on(text.rstrip("\n") + "\n")
        return
    try:
        with output.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise UserError(
            "exists already", hint="remove it, or name another", where=str(output)
        ) from None
    except OSError as error:
        raise UserError(f"cannot be written: {error.strerror}", where=str(output)) from error
    note(f"written to {output}")


def schema() -> None:
    """Print the JSON Schema of experiment files.

    Editors that know YAML schemas complete and check with it:
    `bequeath config schema > bequeath.schema.json`, and in the file's first line
    `# yaml-language-server: $schema=bequeath.schema.json`.
    """
    from dispatcher.experiment.reference import json_schema

    print_json(json_schema())


def reference() -> None:
    """Print every key of an experiment file with its type, default and meaning (Markdown)."""
    from dispatcher.experiment.reference import reference_markdown

    say(reference_markdown().rstrip())
