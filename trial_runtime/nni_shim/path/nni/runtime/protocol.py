"""The commands of NNI's dispatcher, for advisors that import them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any


class CommandType(Enum):
    """Commands between manager and dispatcher."""

    Initialize = b"IN"
    RequestTrialJobs = b"GE"
    ReportMetricData = b"ME"
    UpdateSearchSpace = b"SS"
    ImportData = b"FD"
    AddCustomizedTrialJob = b"AD"
    TrialEnd = b"EN"
    Terminate = b"TE"
    Ping = b"PI"
    Initialized = b"ID"
    NewTrialJob = b"TR"
    SendTrialJobParameter = b"SP"
    NoMoreTrialJobs = b"NO"
    KillTrialJob = b"KI"


#: Called with the commands of advisors: set by the tuner host (``dispatcher/tuner_host``).
hearer: Callable[[Any, Any], None] | None = None


def receive() -> tuple[Any, Any]:
    """Raise an error: commands come by the handlers of an advisor."""
    raise RuntimeError("nothing is received here: messages come by the handlers of an advisor")


def send(command: CommandType, data: Any) -> None:
    """Send a command to the manager, whose part bequeath's tuner host plays."""
    if hearer is None:
        raise RuntimeError("no advisor is run here")
    hearer(command, data)
