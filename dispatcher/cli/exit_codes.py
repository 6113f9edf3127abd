"""The exit codes of the command line and their meanings, printed in ``docs/cli.md`` as well."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The kind of fault, or the end of the experiment. Scripts may rely on these."""

    OK = 0
    GENERAL = 1
    USAGE = 2
    USER = 3
    ENVIRONMENT = 4
    PROTOCOL = 5
    EXPERIMENT_STOPPED = 6
    SUPERSEDED = 7
    INTERNAL = 70
    INTERRUPTED = 130


MEANINGS: dict[ExitCode, str] = {
    ExitCode.OK: "done; for `run` and `resume`: the experiment is completed",
    ExitCode.GENERAL: "a check found something (`doctor`, `nfs verify`, `experiment verify`, "
    "`tuner check`, answers that differ in `tuner replay`), or a question was answered with no",
    ExitCode.USAGE: "the command line itself: an unknown command or option, a missing argument",
    ExitCode.USER: "the experiment file, the tuner's code or the trial's code, so for `run` and "
    "`resume` an experiment that failed (its tuner raised, too many trials failed in a row, no "
    "trial went well, or none of its machines could be had); no such experiment or trial; "
    "refused by the head",
    ExitCode.ENVIRONMENT: "the world outside: a disk, a socket, a head that does not run or "
    "does not answer, a missing package",
    ExitCode.PROTOCOL: "another process broke the protocol",
    ExitCode.EXPERIMENT_STOPPED: "`run` and `resume`: the experiment was stopped by another "
    "process (`bequeath stop`); can be resumed",
    ExitCode.SUPERSEDED: "`run` and `resume`: another head has taken over the experiment "
    "(`bequeath resume --take-over`); its trials go on there",
    ExitCode.INTERNAL: "a fault of bequeath itself; please report it with the traceback",
    ExitCode.INTERRUPTED: "stopped by Ctrl-C, once or twice; an experiment can be resumed",
}
