"""One process that answers for one trained model: started, asked, watched, ended. Any thread, one
call at a time."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

import msgspec
import psutil

from dispatcher.errors import PassingBackendError, UserError
from dispatcher.inference.trained import ProcessPlan, TrainedModel, prepared
from trial_runtime.agent.processes import warden
from trial_runtime.agent.processes.sweep import kill_sessions_below
from trial_runtime.inference import INFER, LOAD_MODEL, ModelReply
from trial_runtime.session_file import AGENT_VARIABLE

#: Bytes of an answer, and of a message that has one.
MOST_ANSWER: Final = 1 << 20
_MOST_MESSAGE: Final = MOST_ANSWER + (64 << 10)

#: Bytes of what the user's code prints that are kept: the newest.
_MOST_PRINTED: Final = 16 << 10

#: Processes of one model, itself included.
MOST_PROCESSES: Final = 64

#: Seconds between looks at memory and number of processes, and for a killed one to be gone.
_LOOK_EVERY_S: Final = 0.25
_GONE_S: Final = 5.0

_LENGTH: Final = struct.Struct(">I")

_STAGES: Final = {
    "import": "the trials' code cannot be imported",
    "load": f"{LOAD_MODEL} failed",
    "request": "the request cannot be taken",
    "infer": f"{INFER} failed",
    "answer": f"what {INFER} returned is no answer",
}


class ModelFailed(UserError):
    """Raised where the user's code fails, dies, or does not answer within its bounds. Its process
    has ended if ``ended``."""

    def __init__(self, message: str, *, hint: str = "", where: str = "", ended: bool) -> None:
        super().__init__(message, hint=hint, where=where)
        self.ended = ended


class ModelBounds(NamedTuple):
    """Bounds of a process: bytes of memory, seconds for an answer, seconds to load before it."""

    memory_bytes: int
    answer_s: float
    load_s: float


class ModelAnswer(NamedTuple):
    """An answer, the seconds that it took, and the end of what was printed."""

    value: Any
    took_s: float
    printed: str


class _Usage(NamedTuple):
    """All that the processes of one model take: bytes that are resident, how many there are, and
    seconds of processors."""

    memory_bytes: int
    processes: int
    cpu_s: float


class ModelProcess:
    """A process with its model loaded.

    Args:
        model: the model.
        bounds: of the process.

    Raises:
        ModelFailed: its code fails, or takes longer than it may.
        UserError: its weights are gone.
        BackendError: no process can be started, or the weights cannot be read now.
    """

    def __init__(self, model: TrainedModel, bounds: ModelBounds) -> None:
        self._model = model
        self._bounds = bounds
        self._printed = bytearray()
        self._cpu_at_rest: float | None = None  # as of when nobody asked it any more
        self._closing = ExitStack()
        try:
            self._plan = self._closing.enter_context(
                prepared(model, bounds.memory_bytes, MOST_ANSWER)
            )
            self._closing.callback(_warden(self._plan))
            self._line, self._output, self._process = _started(self._plan)
            self._closing.callback(self._end)
            self._send(self._plan.order)
            self.loaded_s = self._answered(bounds.load_s, "loading the model").took_s
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def ask(self, request: dict[str, Any], timeout_s: float | None = None) -> ModelAnswer:
        """Ask the model. Blocks, for a bounded time.

        Args:
            request: what ``infer`` gets.
            timeout_s: seconds for the answer; those of the bounds if not given.

        Raises:
            ModelFailed: its code fails, or takes longer than it may.
        """
        self._printed.clear()
        self._cpu_at_rest = None
        if self._take(unasked := bytearray()) and unasked:
            raise self._failed("the process answers what nobody asked for")
        self._send(request)
        reply = self._answered(timeout_s or self._bounds.answer_s, INFER)
        return ModelAnswer(reply.value, reply.took_s, self._output_text())

    def close(self) -> None:
        """End the process and all that it has started; the weights are held no more."""
        self._closing.close()

    def _send(self, message: Any) -> None:
        content = msgspec.json.encode(message)
        self._line.settimeout(self._bounds.answer_s)
        try:
            self._line.sendall(_LENGTH.pack(len(content)) + content)
        except OSError:
            return  # it has ended: what it says at last tells why
        finally:
            self._line.settimeout(0)

    def _answered(self, limit_s: float, what: str) -> ModelReply:
        """Return its next message, watching it meanwhile."""
        deadline = time.monotonic() + limit_s
        received = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._line, selectors.EVENT_READ)
            selector.register(self._output, selectors.EVENT_READ)
            looked = time.monotonic()
            while (now := time.monotonic()) < deadline:
                if now - looked > _LOOK_EVERY_S:
                    self._look()
                    looked = now
                ready = {key.fd for key, _ in selector.select(min(_LOOK_EVERY_S, deadline - now))}
                if self._output in ready and not self._take_output():
                    selector.unregister(self._output)
                if self._line.fileno() in ready:
                    if not self._take(received):
                        raise self._died(what)
                    if (reply := self._whole(received)) is not None:
                        return reply
        raise self._failed(
            f"{what} took longer than {limit_s:g} s, and was ended", hint="allow more: --timeout"
        )

    def _take(self, received: bytearray) -> bool:
        try:
            piece = self._line.recv(1 << 20)
        except BlockingIOError:
            return True
        except OSError:
            return False
        received += piece
        return bool(piece)

    def _whole(self, received: bytearray) -> ModelReply | None:
        if len(received) < _LENGTH.size:
            return None
        (many,) = _LENGTH.unpack_from(received)
        if many > _MOST_MESSAGE or len(received) > _LENGTH.size + many:
            raise self._failed("the process answers what nobody asked for")
        if len(received) < _LENGTH.size + many:
            return None
        try:
            reply = msgspec.json.decode(received[_LENGTH.size :], type=ModelReply)
        except msgspec.DecodeError as error:
            raise self._failed(f"the process answers what cannot be read: {error}") from error
        if reply.failed:
            ended = reply.stage in ("import", "load")
            text = _STAGES.get(reply.stage, "the process failed")
            failed = self._plan.mask(reply.failed)
            line, _, _ = failed.rpartition("\n")
            text = f"{text}:\n{failed}" if line else f"{text}: {failed}"
            raise ModelFailed(
                text, hint=self._hint(), where=str(self._model.offer.module.file), ended=ended
            )
        return reply

    def _take_output(self) -> bool:
        try:
            piece = os.read(self._output, 64 << 10)
        except BlockingIOError:
            return True
        self._printed += piece
        del self._printed[:-_MOST_PRINTED]
        return bool(piece)

    def _output_text(self) -> str:
        """Return the end of what it has printed, without secrets."""
        os.set_blocking(self._output, False)
        for _ in range(16):  # a pipe holds no more; a thread of the user's may print without end
            before = len(self._printed)
            if not self._take_output() or len(self._printed) == before:
                break
        return self._plan.mask(bytes(self._printed).decode(errors="replace"))

    def fits_idle(self, cpu_s: float) -> bool:
        """Whether it lives, and takes no more than it may while nobody asks it.

        Args:
            cpu_s: processor seconds that it may take from its last answer to the next request.
        """
        if not self.alive:
            return False
        usage = self._usage()
        if self._cpu_at_rest is None:
            self._cpu_at_rest = usage.cpu_s
        return self._excess(usage) is None and usage.cpu_s - self._cpu_at_rest <= cpu_s

    def _look(self) -> None:
        """End it if it takes more than it may: the bound on data that each process has does not
        count memory that is shared, nor what several have together."""
        excess = self._excess(self._usage())
        if excess is not None:
            raise self._failed(*excess)

    def _usage(self) -> _Usage:
        """Return what all its processes take together."""
        try:
            leader = psutil.Process(self.pid)
            every = [leader, *leader.children(recursive=True)]
        except psutil.Error:
            return _Usage(0, 0, 0.0)
        memory = many = 0
        cpu_s = 0.0
        for each in every:
            try:
                if each.status() == psutil.STATUS_ZOMBIE:
                    continue  # it has ended; nobody has asked how
                memory += each.memory_info().rss
                times = each.cpu_times()
                cpu_s += times.user + times.system + times.children_user + times.children_system
                many += 1
            except psutil.Error:
                continue
        return _Usage(memory, many, cpu_s)

    def _excess(self, usage: _Usage) -> tuple[str, str] | None:
        """Return what is too much of it, and what to do; None if nothing is."""
        if usage.processes > MOST_PROCESSES:
            text = f"the model has {usage.processes} processes, and was ended"
            return f"{text}; {MOST_PROCESSES} are allowed", ""
        most = self._bounds.memory_bytes
        if usage.memory_bytes > most:
            text = f"the model takes {usage.memory_bytes / (1 << 20):,.0f} MiB of memory, and was"
            return f"{text} ended; {most / (1 << 20):,.0f} MiB are allowed", "allow more: --memory"
        return None

    def _died(self, what: str) -> ModelFailed:
        try:
            code = self._process.wait(_GONE_S)
        except subprocess.TimeoutExpired:
            return self._failed(f"the process closed its line during {what}")
        how = f"was ended by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        return self._failed(f"the process {how} during {what}")

    def _failed(self, text: str, hint: str = "") -> ModelFailed:
        """Make an error after which the process is of no use."""
        where = str(self._model.offer.module.file)
        return ModelFailed(text, hint=hint or self._hint(), where=where, ended=True)

    def _hint(self) -> str:
        said = self._output_text().strip()
        return f"it printed: {said[-2_000:]}" if said else ""

    def _end(self) -> None:
        """Kill it and all below it, by their ids, and reap it."""
        try:
            # It leads the group, and is not reaped yet, so the number is its own.
            if self._process.returncode is None:
                os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        kill_sessions_below(self._plan.here)  # what has left the group, and its parents
        self._line.close()
        os.close(self._output)
        try:
            self._process.wait(_GONE_S)
        except subprocess.TimeoutExpired:
            pass  # it hangs in the kernel, as over a share that is away


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # those of real time have numbers only
        return f"signal {number}"


def _warden(plan: ProcessPlan) -> Callable[[], None]:
    """Start a program that ends the model's processes when this one is killed; return what lets go
    of it. The model's own process ends, too, but what has left its group does not."""
    if sys.platform != "linux":
        return lambda: None
    try:
        started = subprocess.Popen(
            [sys.executable, "-I", "-S", warden.__file__, f"{AGENT_VARIABLE}={plan.mark}"],
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise PassingBackendError(
            f"no process can be started for the model: {error.strerror}"
        ) from error

    def let_go() -> None:
        assert started.stdin is not None
        started.stdin.close()
        try:
            started.wait(_GONE_S)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()

    return let_go


def _started(plan: ProcessPlan) -> tuple[socket.socket, int, subprocess.Popen[bytes]]:
    """Start a process: its line, its output, itself. Raises ``PassingBackendError``."""
    ours, theirs = socket.socketpair()
    output, printing = os.pipe()
    try:
        process = subprocess.Popen(
            [*plan.command, str(theirs.fileno())],
            cwd=plan.folder,
            env=plan.environment,
            stdin=subprocess.DEVNULL,
            stdout=printing,
            stderr=printing,
            start_new_session=True,
            pass_fds=(theirs.fileno(),),
        )
    except OSError as error:
        ours.close()
        os.close(output)
        raise PassingBackendError(
            f"no process can be started for the model: {error.strerror}",
            where=str(error.filename or plan.folder),
        ) from error
    finally:
        theirs.close()
        os.close(printing)
    return ours, output, process
