"""``bequeath completion``: the script that lets a shell complete commands and experiments."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from dispatcher.terminal.console import pass_on


class Shell(StrEnum):
    """Shells that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[
        Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False)
    ],
) -> None:
    """Print the completion script of a shell.

    For this session: `source <(bequeath completion bash)`. For good:
    `bequeath --install-completion`.
    """
    # What typer's own --show-completion prints; not in its list of public names.
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    pass_on(
        get_completion_script(
            prog_name="bequeath", complete_var="_BEQUEATH_COMPLETE", shell=shell.value
        ).strip()
        + "\n"
    )
