"""The entry of the command line. Imports typer and nothing else, so that ``--help`` is quick."""

from __future__ import annotations

import io
import sys
from typing import Annotated, Any

import typer

from dispatcher.cli.commands import ROOT
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.cli.lazy_group import HELP_WIDTH, LazyGroup

PROGRAM = "bequeath"


class RootGroup(LazyGroup):
    """The whole command line, with the one place where errors become text and exit codes."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings | {"table": ROOT})

    def invoke(self, ctx: Any) -> Any:
        """Run a command. Errors of ours end as ``where: message`` and their exit code."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except Exception as error:
            from dispatcher.errors import DispatcherError

            if not isinstance(error, DispatcherError):
                _make_harmless(error)
                raise
            from dispatcher.cli.failure import report

            raise typer.Exit(report(error)) from error


def _make_harmless(error: Exception) -> None:
    """Make an error of click's harmless: it repeats what was typed or read."""
    message = getattr(error, "message", None)
    if isinstance(message, str):
        from dispatcher.safe_text import made_safe

        # The library that reads values distinguishes its kinds of faults by it.
        message = message.removeprefix("Value error, ")
        error.message = made_safe(message)  # type: ignore[attr-defined]


app = typer.Typer(
    cls=RootGroup,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": HELP_WIDTH, "help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from dispatcher import __version__

        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Search neural architectures whose children inherit their parents' weights.

    Start with `bequeath run FILE`; then `bequeath best`, `bequeath lineage`, `bequeath why`.
    Where a command takes an EXPERIMENT, an id, the beginning of one, a name or a folder will do.
    """


def root() -> RootGroup:
    """Return the command line as an object: for :func:`main`, tests and the reference."""
    command = typer.main.get_command(app)
    assert isinstance(command, RootGroup)
    return command


def main() -> None:
    """Run the command ``bequeath``. Ends the process."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")  # signs that an encoding such as Latin-1 lacks
    try:
        root().main(prog_name=PROGRAM)
    except Exception as error:  # noqa: BLE001 - the top of the main thread
        from dispatcher.cli.failure import report_internal

        sys.exit(report_internal(error))
