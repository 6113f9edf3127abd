"""``bequeath run --chaos SEED``: the processes of the experiment get faults at random."""

from __future__ import annotations

import signal
import time
from types import FrameType

import typer

from dispatcher.chaos import Supervisor
from dispatcher.cli.closing import print_closing
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.cli.foreground import exit_code_of
from dispatcher.core.model import Phase
from dispatcher.errors import DispatcherError, PassingBackendError
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.experiments.processes import spawn_head
from dispatcher.terminal.console import note

#: Signals that are the head's to interpret.
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

#: Status of an experiment that its head has ended.
_ENDS = ("completed", "stopped", "failed")


def lead_under_chaos(handle: ExperimentHandle, seed: int, every_s: float, *, as_json: bool) -> None:
    """Lead to the end and exit accordingly. Blocks; must be called in the main thread.

    Args:
        handle: on the experiment.
        seed: of the schedule of faults.
        every_s: mean time between two faults, in seconds.
        as_json: print the outcome as one JSON document.

    Raises:
        typer.Exit: unless the experiment is completed.
        PassingBackendError: the head ended early, and not by a fault of ours; with its stderr.
    """
    errors = handle.place.head_stderr
    supervisor = Supervisor(
        handle.folder,
        seed,
        lambda: spawn_head(handle.folder, errors),
        lambda: _trials_over(handle),
        every_s=every_s,
        tell=note,
    )

    def forward(number: int, frame: FrameType | None) -> None:
        supervisor.interrupt(number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    began = time.monotonic()
    note(f"chaos of seed {seed}: what was done to whom is in {handle.place.chaos_log}")
    try:
        code = supervisor.run()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    status = handle.status().status
    if status.value not in _ENDS and supervisor.interrupted:
        # The signal reached a head before it had its handlers: the agent of the previous head may
        # wait for a next one. What the journal holds can be resumed.
        handle.kill()
        raise typer.Exit(ExitCode.INTERRUPTED)
    if status.value not in _ENDS:
        raise PassingBackendError(
            errors.read_text(errors="replace").strip() or f"the head ended with code {code}",
            hint="'bequeath resume' goes on, without chaos",
            where=str(errors),
        )
    phase = Phase(status.value)
    print_closing(handle, phase, time.monotonic() - began, as_json=as_json)
    exit_code = exit_code_of(phase, interrupted=supervisor.interrupted)
    if exit_code is not ExitCode.OK:
        raise typer.Exit(exit_code)


def _trials_over(handle: ExperimentHandle) -> int:
    """Return how many trials are over; -1 while the store cannot be read."""
    try:
        return handle.status().ended
    except DispatcherError:
        return -1
