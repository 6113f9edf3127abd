"""``bequeath nni top``."""

from __future__ import annotations

from typing import Annotated

import typer

from dispatcher.cli.arguments import Experiment


def top(
    experiment: Experiment = None,
    every_s: Annotated[
        float,
        typer.Option("--time", "-t", metavar="SECONDS", min=0.1, help="Time between two updates."),
    ] = 3.0,
) -> None:
    """Watch an experiment live, as `bequeath top` does."""
    from dispatcher.cli.top import watch

    watch(experiment, None, every_s=every_s)
