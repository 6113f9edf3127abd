"""The words of NNI's dispatcher, for advisors that import them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any


class CommandType(Enum):
    """What manager and dispatcher say to one another."""

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


#: Who hears what advisors say: set by the tuner host, see ``dispatcher/tuner_host/advising.py``.
hearer: Callable[[Any, Any], None] | None = None


def receive() -> tuple[Any, Any]:
    """Of NNI; what is to be received comes by the handlers of an advisor."""
    raise RuntimeError("nothing is received here: messages come by the handlers of an advisor")


def send(command: CommandType, data: Any) -> None:
    """Say something to the manager, whose part bequeath's tuner host plays."""
    if hearer is None:
        raise RuntimeError("no advisor is run here")
    hearer(command, data)
