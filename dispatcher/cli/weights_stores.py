"""``bequeath weights versions``, and the part of ``du`` and ``gc`` for shared stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json
from dispatcher.terminal import formatting
from dispatcher.terminal.console import Column, note, print_json, print_table, say

if TYPE_CHECKING:
    from dispatcher.queries.versions import StoreRow


def versions(
    experiment: Experiment = None,
    store: Annotated[
        str | None, typer.Option("--store", metavar="NAME", help="Only of this shared store.")
    ] = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """List the versions of shared stores that are there, whose they are, and why they stay."""
    from dispatcher.experiments.handle import ExperimentHandle, Purpose

    handle = ExperimentHandle.find(experiment, folder, Purpose.USE)
    stores = handle.weights.stores()
    chosen = [each for each in stores if store in (None, each.name)]
    if as_json:
        listed = {
            each.name: {
                "published": each.published,
                "versions": [version.to_json() for version in each.versions],
            }
            for each in chosen
        }
        print_json({"experiment": handle.id, "stores": listed})
        return
    _show(chosen)


def _show(stores: list[StoreRow]) -> None:
    columns = (
        Column("store"),
        Column("version", right=True),
        Column("by", right=True),
        Column("size", right=True),
        Column("digest"),
        Column("stays as", shrink=True),
    )
    rows = [
        (
            one.store,
            str(one.number),
            f"{one.trial}.{one.attempt}",
            formatting.size(one.nbytes),
            one.digest[:12],
            one.needed,
        )
        for each in stores
        for one in each.versions
    ]
    if rows:
        print_table(columns, rows)
    for each in stores:
        there = formatting.count(len(each.versions), "version")
        say(f"{each.name}: {there} of {each.published} published")
    if not stores:
        note("nothing was published to a shared store")


def show_stores_use(use: dict[str, dict[str, Any]]) -> None:
    """Print a line for each store."""
    for name, each in use.items():
        there = formatting.count(each["versions"], "version")
        left = (
            f"; {formatting.count(each['leftovers'], 'folder')} beside" if each["leftovers"] else ""
        )
        say(
            f"shared store {name}: {there} of {each['published']} published, "
            f"{formatting.size(each['bytes'])}{left}"
        )


def show_swept(swept: dict[str, Any], *, done: bool) -> None:
    """Print how many versions were removed, or would be (``done`` is false)."""
    word = "removed" if done else "would be removed"
    text = f"{formatting.count(swept['versions'], 'version')} of shared stores {word}"
    if swept.get("leftovers"):
        text += f", and {formatting.count(swept['leftovers'], 'folder')} that died publishers left"
    if done:
        text += f": {formatting.count(swept['files'], 'file')}, {formatting.size(swept['bytes'])}"
    say(text)
