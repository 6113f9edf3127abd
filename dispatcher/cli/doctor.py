"""``bequeath doctor``: is this machine fit, and has anything been left behind?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dispatcher.cli import checkup
from dispatcher.cli.arguments import Folder, Json
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.cli.share_checkup import check_share
from dispatcher.errors import DispatcherError
from dispatcher.findings import Finding, Severity
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.terminal.console import print_json
from dispatcher.terminal.marked_lines import MarkedLine, show_marked
from dispatcher.text_width import some_of

if TYPE_CHECKING:
    from dispatcher.experiment import ExperimentConfig

_MARKS = {
    Severity.OK: ("✓", "green"),
    Severity.NOTE: ("•", "yellow"),
    Severity.PROBLEM: ("✗", "red"),
}

#: Names of allocations in one sentence.
_NAMED = 10

#: Modules that run as processes below a head.
_OURS = {"dispatcher.tuner_host", "trial_runtime.agent"}


def doctor(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Check the folders of this experiment file, too."),
    ] = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Check this machine for what bequeath needs, and for what experiments have left behind.

    Looks at Python, packages, torch, the folders for sockets, experiments and weights with
    their file systems, limits on files and threads, shared memory, the clock, GPUs, and
    experiments that lost their head. A weights root of FILE that lies on a network file system
    is measured for some seconds, as `bequeath nfs verify --quick` does, in a folder of its own
    that is removed. Schedulers that FILE names are asked what this user may do there, and for one
    short job that looks for what trials need. Changes nothing else. Exit code 1 if there is a
    problem.
    """
    findings = list(_findings(file, folder))
    bad = any(finding.severity is Severity.PROBLEM for finding in findings)
    if as_json:
        print_json({"ok": not bad, "findings": [finding.to_json("level") for finding in findings]})
    else:
        _show(findings)
    if bad:
        raise typer.Exit(ExitCode.GENERAL)


def _findings(file: Path | None, folder: Path | None) -> Iterator[Finding]:
    from dispatcher.experiments.known_folders import default_folder, with_default_folder

    yield from checkup.check_python()
    yield from checkup.check_packages()
    yield from checkup.check_sockets()
    experiments = folder or default_folder()
    weights = None
    if file is not None:
        from dispatcher.experiment import load_experiment

        config = with_default_folder(load_experiment(file))
        experiments, weights = config.experiment_working_directory, config.weights_folder
        yield from _of_store(config)
        yield from _of_places(config)
        yield from _of_services(config)
    yield from checkup.check_folder("experiments", experiments, journal=True)
    yield from _of_weights(weights, weights or experiments)
    yield from checkup.check_limits()
    yield from checkup.check_shared_memory()
    yield from checkup.check_clock()
    yield from checkup.check_gpus()
    yield from _left_behind(folder)
    yield from _left_over_processes()


def _of_store(config: ExperimentConfig) -> Iterator[Finding]:
    """Check a weights root that is a URL, by writing and reading."""
    from dispatcher.wiring.remote_roots import try_root

    if config.weights_root is None or config.weights_folder is not None:
        return
    try:
        try_root(config)
    except DispatcherError as error:
        yield Finding("weights", Severity.PROBLEM, error.message, error.hint)
    else:
        text = f"{config.weights_root} takes, shows, lists and removes files"
        yield Finding("weights", Severity.OK, text)


def _of_places(config: ExperimentConfig) -> Iterator[Finding]:
    """Say which of several kinds of places are filled first."""
    from dispatcher.wiring.filling import filling_order, has_an_order

    order = filling_order(config)
    if has_an_order(order):
        text = f"filled first: {', then '.join(map(str, order))}"
        yield Finding("places", Severity.OK, text)
    elif len(config.services) > 1:
        text = f"none is filled before another: {', '.join(map(str, order))}"
        yield Finding("places", Severity.NOTE, text, "'cost' of a service says which comes last")


def _of_services(config: ExperimentConfig) -> Iterator[Finding]:
    """Pass on what platforms find of the services: of their schedulers, not of machines."""
    from dispatcher.head.probing import look_over

    for one in look_over(config):
        for finding in one.findings:
            yield replace(finding, topic=one.name, text=f"{finding.topic}: {finding.text}")


def _of_weights(weights: Path | None, below: Path) -> Iterator[Finding]:
    """Check the folder of weights, but no share whose server is away: access to it would hang."""
    if weights is not None:
        checked = check_share("weights", weights)
        yield from checked.findings
        if not checked.answers:
            return
        yield from checkup.check_folder("weights", weights, journal=False)
    yield from checkup.check_mount("weights", below)


def _left_behind(folder: Path | None) -> Iterator[Finding]:
    from dispatcher.experiments.find import all_experiments
    from dispatcher.folders.studies import way_on
    from dispatcher.queries import ExperimentStatus

    listings = all_experiments(folder)
    lost = [one for one in listings if one.status is ExperimentStatus.INTERRUPTED]
    for one in lost:
        text = f"{one.id} lost its head and is not over"
        hint = f"go on with: {way_on(Path(one.folder))}"
        yield Finding("experiments", Severity.NOTE, text, hint)
        yield from _of_schedulers(Path(one.folder))
    if not lost:
        running = sum(one.status is ExperimentStatus.RUNNING for one in listings)
        yield Finding("experiments", Severity.OK, f"{len(listings)} kept, {running} running")


def _of_schedulers(path: Path) -> Iterator[Finding]:
    """Name what a dead head may have left at schedulers; they are not asked."""
    from dispatcher.experiments.handle import ExperimentHandle

    handle = ExperimentHandle(path)
    names = handle.left_at_schedulers()
    if names:
        yield Finding(
            "experiments",
            Severity.NOTE,
            f"{handle.id} may have left at its scheduler: {some_of(names, _NAMED)}",
            f"bequeath stop {handle.id} cancels what is there",
        )


def _left_over_processes() -> Iterator[Finding]:
    """Report agents and tuner hosts whose head is gone: they end by themselves after headGrace."""
    import psutil

    from dispatcher.folders.status import is_led

    for process in psutil.process_iter(["cmdline"]):
        folder = experiment_of(process.info["cmdline"] or [])
        if folder is not None and not is_led(folder):
            text = f"process {process.pid} of {folder.name} waits for a head"
            yield Finding(
                "processes", Severity.NOTE, text, f"bequeath resume {folder.name}, or kill"
            )


def experiment_of(command: list[str]) -> Path | None:
    """Return the folder of a process's experiment, if its head would be on this machine.

    An agent of a head on another machine has a folder of its own, without a journal.
    """
    for module, config in pairwise(command):
        if module in _OURS:
            folder = ExperimentFolder(Path(config).parent)
            return folder.path if folder.journal.is_file() else None
    return None


def _show(findings: list[Finding]) -> None:
    lines = []
    for finding in findings:
        word = "" if finding.severity is Severity.OK else finding.severity.value
        text = (finding.topic, finding.text, finding.hint)
        lines.append(MarkedLine(*_MARKS[finding.severity], word, *text))
    show_marked(lines)
