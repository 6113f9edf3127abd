"""An advisor written for NNI, in the place of a tuner.

An advisor gets messages where a tuner gets calls, and sends trials whenever it likes, under ids of
its own. Here it has a tuner's shape: a request becomes "give me one trial", and the trial that it
sends is the request's answer, at once or later by NNI's ``st_callback``. Further trials that it
sends wait in a queue, from which the next requests are served. One thread makes all calls of it,
one after another; it may send from any thread.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dispatcher.errors import TunerCodeError
from dispatcher.ports import AssessorInput
from dispatcher.tuner_host.adapter import HostServices
from dispatcher.tuner_host.shown import BEFORE_ALL
from trial_runtime import nni_shim
from tuners.errors import NoMoreTrialError

#: Trials that an advisor may send ahead of the requests for them. NNI's own send a bracket or a
#: batch at most; one that sends without end gets an error before memory is full.
MAX_AHEAD = 100_000

#: An advisor that calls one of these on a value gets its JSON text, as from v1.5 of NNI on; others
#: get the value itself, as up to v1.4. A file does not name its release, so its code is read.
_DECODERS = frozenset({"loads", "load"})

#: The method by which a class is known for an advisor.
MARK = "handle_request_trial_jobs"


@dataclass(slots=True, eq=False)
class _Sent:
    """A trial as the advisor sent it."""

    own_id: Any  # its ``parameter_id``, of any kind
    text: str  # the whole message, which it gets back at the trial's end
    parameters: Any
    metrics: int = 0  # intermediate ones so far
    killed: bool = False  # by the advisor
    recalled: tuple[int, int] = BEFORE_ALL  # newest metric that was repeated to it


def is_advisor(owner: Any) -> bool:
    """Whether an object is an advisor of NNI's and no tuner."""
    return callable(getattr(owner, MARK, None)) and not hasattr(owner, "generate_parameters")


class AdvisorTuner:
    """A tuner, as :class:`~dispatcher.tuner_host.signatures.TunerCalls` calls it.

    Raises:
        TunerCodeError: the advisor was built by a real NNI, whose messages go another way.
    """

    def __init__(self, advisor: Any, services: HostServices) -> None:
        self._advisor = advisor
        self._services = services
        nni = importlib.import_module("nni")
        if not str(getattr(nni, "__file__", "")).startswith(nni_shim.folder()):
            raise TunerCodeError(
                f"{type(advisor).__name__} is an advisor, and the nni that it imports is the "
                "installed one, which speaks with its own manager only",
                hint="start bequeath from an environment without nni: it brings what advisors need",
            )
        protocol = importlib.import_module("nni.runtime.protocol")
        vars(protocol)["hearer"] = self._hear
        self._commands = protocol.CommandType
        self._decodes = _decodes_values(type(advisor))
        self._initialized = False
        self._accept_customized = False  # it does not know the trials that users add
        self._noted = False
        self._lock = threading.Lock()  # held for a few steps, never while the advisor runs
        self._ahead: deque[_Sent] = deque()
        self._waiting: deque[tuple[int, Callable[[int, Any], Any]]] = deque()
        self._running: dict[int, _Sent] = {}

    # ---- the calls of a tuner ------------------------------------------------------------

    def update_search_space(self, search_space: Any) -> None:
        """Send a search space to the advisor; the first one as NNI's "initialize"."""
        first, self._initialized = not self._initialized, True
        self._tell("Initialize" if first else "UpdateSearchSpace", search_space)

    def generate_parameters(self, parameter_id: int, st_callback: Any = None) -> Any:
        """Return the trial that the advisor sends for this request, or has sent before it.

        Raises:
            NoMoreTrialError: it has sent none; ``st_callback`` brings it once it does.
        """
        with self._lock:
            before = len(self._waiting)
            self._waiting = deque(one for one in self._waiting if one[0] != parameter_id)
            owes = len(self._waiting) < before  # asked again for what it has not sent yet
            ask = not self._ahead and not owes
        if ask:
            self._tell("RequestTrialJobs", 1)
        with self._lock:
            if self._ahead:
                sent = self._running[parameter_id] = self._ahead.popleft()
                return sent.parameters
            if st_callback is not None:
                self._waiting.append((parameter_id, st_callback))
        raise NoMoreTrialError("the advisor has sent no trial for this request")

    def take_back(self, parameter_id: int) -> None:
        """Put the trial sent for a request back in the queue, for the next request.

        Needed when calls are repeated after a restart, and the request had another answer then.
        """
        with self._lock:
            sent = self._running.pop(parameter_id, None)
            if sent is not None:
                self._ahead.appendleft(sent)

    def recall(self, one: AssessorInput) -> None:
        """Repeat a metric that a trial reported before this process began."""
        sent = self._running.get(one.trial)
        if sent is None or one.value is None:
            return
        try:
            self.intermediate_result(one.trial, json.loads(one.value), one.attempt, one.seq)
        finally:
            sent.recalled = (one.attempt, one.seq)

    def end_again(self) -> None:
        """End the running trials that the advisor wanted ended while its past was repeated."""
        with self._lock:
            wanted = [trial for trial, sent in self._running.items() if sent.killed]
        for trial in wanted:
            self._services.stop_trial(trial)

    def intermediate_result(
        self, parameter_id: int, value: Any, attempt: int = 0, seq: int = 0
    ) -> None:
        """Hand over an intermediate result of a running trial.

        Args:
            parameter_id: the trial, by the request's number.
            value: decoded JSON.
            attempt: the attempt that reported it; with ``seq`` it shows whether :meth:`recall`
                has handed the metric over already.
            seq: number of the metric within the attempt.
        """
        sent = self._running.get(parameter_id)
        if sent is not None and (attempt, seq) > sent.recalled:
            number, sent.metrics = sent.metrics, sent.metrics + 1
            self._metric(parameter_id, sent, "PERIODICAL", number, value)

    def receive_trial_result(self, parameter_id: int, parameters: Any, value: Any) -> None:
        """Hand over a final result.

        Args:
            parameter_id: the trial, by the request's number.
            parameters: not used; the advisor knows what it has sent.
            value: decoded JSON.
        """
        sent = self._running.get(parameter_id)
        if sent is not None:
            self._metric(parameter_id, sent, "FINAL", 0, value)

    def trial_end(self, parameter_id: int, success: bool) -> None:
        """Hand over the end of a trial."""
        sent = self._running.pop(parameter_id, None)
        if sent is None:
            return
        how = "SUCCEEDED" if success else "EARLY_STOPPED" if sent.killed else "FAILED"
        message = {"trial_job_id": str(parameter_id), "event": how, "hyper_params": sent.text}
        self._tell("TrialEnd", message)

    def import_data(self, data: Any) -> str:
        """Hand over results of another experiment; return a note for the user, or nothing."""
        own = getattr(type(self._advisor), "handle_import_data", None)
        if getattr(own, "__module__", "").partition(".")[0] == "nni":
            return f"{type(self._advisor).__name__} has no handle_import_data: nothing is imported"
        self._tell("ImportData", data)
        return ""

    def _on_exit(self) -> None:
        self._advisor.stopping = True  # its own threads may look at this
        on_exit = getattr(self._advisor, "_on_exit", None)
        if on_exit is not None:
            on_exit()

    def _tell(self, command: str, data: Any) -> None:
        self._advisor.process_command(self._commands[command], data)

    def _metric(self, trial: int, sent: _Sent, kind: str, number: int, value: Any) -> None:
        written = json.dumps(value) if self._decodes else value
        self._tell(
            "ReportMetricData",
            {
                "parameter_id": sent.own_id,
                "trial_job_id": str(trial),
                "type": kind,
                "sequence": number,
                "value": written,
            },
        )

    # ---- its messages, in any thread -----------------------------------------------------

    def _hear(self, command: Any, data: Any) -> None:
        match getattr(command, "name", command):
            case "NewTrialJob":
                self._take(_read(data))
            case "KillTrialJob":
                self._kill(data)
            case "SendTrialJobParameter":
                raise ValueError(
                    "SendTrialJobParameter has no meaning here: a trial gets its parameters once; "
                    "send each phase as a trial of its own (NewTrialJob)"
                )
            case "Initialized" | "NoMoreTrialJobs":
                pass  # seen by what it does, or does not
            case other:
                raise ValueError(f"{other} is no command that an advisor sends")

    def _take(self, sent: _Sent) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    if len(self._ahead) >= MAX_AHEAD:
                        raise RuntimeError(
                            f"{MAX_AHEAD:,} trials were sent that nobody has asked for yet: send "
                            "one for each that handle_request_trial_jobs asks for"
                        )
                    self._ahead.append(sent)
                    return
                trial, answer = self._waiting.popleft()
                self._running[trial] = sent
            if answer(trial, sent.parameters):
                return
            with self._lock:  # no thread waits for that request any more
                self._running.pop(trial, None)

    def _kill(self, data: Any) -> None:
        try:
            trial = int(json.loads(data) if isinstance(data, str) else data)
        except ValueError:
            trial = -1
        sent = self._running.get(trial)
        if sent is not None:
            sent.killed = True
            self._services.stop_trial(trial)
        elif not self._noted:
            self._noted = True
            self._services.note(
                f"the advisor wants to end trial {data}, and none of that trial_job_id runs. "
                "(Said once.)"
            )


def _read(data: Any) -> _Sent:
    """Read a trial from the text of NewTrialJob. Raises ``ValueError`` if it holds none."""
    try:
        message = json.loads(data)
    except (TypeError, ValueError):
        message = None
    if not isinstance(message, dict) or not {"parameter_id", "parameters"} <= message.keys():
        raise ValueError(
            "NewTrialJob needs the JSON text of an object with 'parameter_id' and 'parameters', "
            f"not {str(data)[:200]!r}"
        )
    message.setdefault("parameter_source", "algorithm")
    message.setdefault("parameter_index", 0)
    return _Sent(message["parameter_id"], json.dumps(message), message["parameters"])


def _decodes_values(owner: type) -> bool:
    """Whether a class, or one that it derives from beside NNI's own, decodes values."""
    return any(_decodes(tree) for tree in _sources(owner))


def _sources(owner: type) -> Iterator[ast.Module]:
    for cls in owner.__mro__:
        top = cls.__module__.partition(".")[0]
        if top in ("nni", "builtins") or cls.__module__ not in sys.modules:
            continue
        try:
            yield ast.parse(inspect.getsource(sys.modules[cls.__module__]))
        except (OSError, TypeError, SyntaxError):
            continue  # without a source; taken for one of the old kind


def _decodes(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Call) and _name(node.func) in _DECODERS and _is_of_a_value(node)
        for node in ast.walk(tree)
    )


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_of_a_value(call: ast.Call) -> bool:
    """``loads(data["value"])``, ``loads(data.get("value"))``, ``loads(value)``."""
    inside = [node for argument in call.args for node in ast.walk(argument)]
    return any(
        (isinstance(node, ast.Constant) and node.value == "value")
        or (isinstance(node, ast.Name) and node.id == "value")
        for node in inside
    )
