"""Printing of errors: ``where: message`` and a hint; a traceback only for faults of bequeath."""

from __future__ import annotations

import traceback

from dispatcher.cli.exit_codes import ExitCode
from dispatcher.errors import DispatcherError, InternalError, SeveralErrors
from dispatcher.safe_text import keep_lines, safe_text
from dispatcher.terminal.console import emit, styled


def report(error: DispatcherError) -> ExitCode:
    """Print an error to stderr and return the exit code it asks for."""
    if isinstance(error, InternalError):
        return report_internal(error)
    several = error.errors if isinstance(error, SeveralErrors) else (error,)
    for one in several:
        _print(one)
    if len(several) > 1:
        emit(f"{len(several)} errors", err=True)
    return ExitCode(error.exit_code)


def _print(error: DispatcherError) -> None:
    place = styled(f"{safe_text(error.where)}: ", bold=True) if error.where else ""
    emit(place, keep_lines(error.message), err=True)
    if error.hint:
        emit(styled(f"  {keep_lines(error.hint)}", dim=True), err=True)


def report_internal(error: Exception) -> ExitCode:
    """Print a fault of bequeath itself with its traceback, and return its exit code."""
    emit(keep_lines("".join(traceback.format_exception(error)).rstrip()), err=True)
    emit("this is a fault of bequeath itself, please report it with the lines above", err=True)
    return ExitCode.INTERNAL
