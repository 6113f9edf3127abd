"""``bequeath hosts tidy``: what experiments have left on machines goes when it is old enough."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dispatcher.cli.arguments import Json, Yes, confirmed
from dispatcher.errors import UserError
from dispatcher.safe_text import safe_text
from dispatcher.terminal.console import Column, note, print_json, print_table, say
from dispatcher.terminal.formatting import duration, size

if TYPE_CHECKING:
    from dispatcher.platforms.host import ReachableHost
    from dispatcher.remote_python.leftovers import Left

#: Days without a change after which a file is, as a rule, not needed any more.
DAYS = 30.0


def tidy(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET",
            help="An experiment file, for its machineList; or a machine, as [USER@]HOST[:PORT].",
            show_default=False,
        ),
    ],
    older_than: Annotated[
        float,
        typer.Option(
            metavar="DAYS", min=0.0, help="Only folders in which nothing changed for so long."
        ),
    ] = DAYS,
    experiment: Annotated[
        str,
        typer.Option(
            metavar="ID", help="Only of this experiment, whatever its age.", show_default=False
        ),
    ] = "",
    work_folder: Annotated[
        str, typer.Option(metavar="DIR", help="The work folder there, for machines named here.")
    ] = "~/.bequeath",
    python: Annotated[
        str, typer.Option(metavar="PROGRAM", help="The Python there, for machines named here.")
    ] = "python3",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Remove nothing.")] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Remove the files that experiments have left on machines: logs, working directories, spools.

    Files that a process uses stay, and so do files that changed lately. Of an experiment that
    could be resumed, or whose logs were not fetched, nothing is left there afterwards.
    """
    from dispatcher.remote_python.leftovers import why_it_stays

    if as_json and not (yes or dry_run):
        raise UserError("with --json, add --yes or --dry-run")
    reports = []
    for word in targets:
        for host in _hosts(word, work_folder, python):
            left = host.leftovers()
            stays = {
                name: why_it_stays(name, one, days=older_than, experiment=experiment)
                for name, one in left.items()
            }
            goes = [name for name, why in stays.items() if not why]
            if not as_json:
                _show(host.name, left, stays)
            gone: list[str] = []
            if goes and not dry_run:
                confirmed(f"Remove {len(goes)} folders of {host.name}?", yes)
                gone = host.remove(goes)
                freed = size(sum(left[name].bytes for name in gone))
                if not as_json:
                    say(f"{safe_text(host.name)}: {len(gone)} removed, {freed}")
            reports.append({"machine": host.name, "left": left, "stays": stays, "removed": gone})
    if as_json:
        print_json({"machines": reports})


def _hosts(word: str, work_folder: str, python: str) -> list[ReachableHost]:
    from dispatcher.cli.hosts.check_targets import host_named, hosts_of_file, is_file

    if not is_file(word):
        return [host_named(word, python=python, work_folder=work_folder)]
    return [host for _, host in hosts_of_file(Path(word))[1]]


def _show(machine: str, left: dict[str, Left], stays: dict[str, str]) -> None:
    if not left:
        note(f"{safe_text(machine)}: nothing is left there")
        return
    columns = [Column("machine"), Column("what"), Column("size", True), Column("age", True)]
    rows = [
        (machine, name, size(one.bytes), duration(one.age_s), stays[name] or "may go")
        for name, one in left.items()
    ]
    print_table([*columns, Column("")], rows)
