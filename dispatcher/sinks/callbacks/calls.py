"""One call after another, each in a process that is ended after its time: functions and commands.

Functions share one process, which has imported their modules already; a call that takes too long
takes it along, and the next one starts another. Commands have one each. What they print goes to a
log whose size is bounded.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dispatcher.experiment.callbacks import CallbackConfig, path_with

#: Bytes of the log and of the one before it.
MOST_LOG: Final = 1 << 20

#: Characters of an error that are kept.
MOST_TEXT: Final = 300

#: Facts that commands have as variables, too: those that are one plain value.
_VARIABLES: Final = (
    "experiment", "name", "folder", "trial", "attempt", "parent", "outcome", "value", "error",
    "status", "reason",
)  # fmt: skip

#: Seconds that the process of functions gets to end by itself.
_END_S: Final = 2.0


class CallLog:
    """The file that calls print to; of what does not fit the newest stays. Any thread.

    Args:
        path: of the file; the one before it has ``.1`` behind its name.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def write(self, content: bytes) -> None:
        """Add to it. A log that cannot be written stops nothing."""
        with self._lock, contextlib.suppress(OSError):
            with contextlib.suppress(FileNotFoundError):
                if self._path.stat().st_size + len(content) > MOST_LOG:
                    self._path.replace(self._path.with_name(self._path.name + ".1"))
            with self._path.open("ab") as file:
                file.write(content[-MOST_LOG:])

    def note(self, text: str) -> None:
        """Add a line of ours, with the time."""
        moment = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime())
        self.write(f"{moment} {text}\n".encode("utf-8", "replace"))

    def follow(self, stream: int) -> None:
        """Add what comes from a pipe until its end, in a thread; closes it."""
        threading.Thread(target=self._copy, args=(stream,), daemon=True).start()

    def _copy(self, stream: int) -> None:
        with os.fdopen(stream, "rb", buffering=0) as pipe:
            while content := pipe.read(1 << 16):
                self.write(content)


class Calls:
    """Calls functions and commands. One thread.

    Args:
        code: the folder of the code, in which all of them run.
        time_limit_s: seconds for one call.
        log: gets what they print, and how each has failed.
    """

    def __init__(self, code: Path, time_limit_s: float, log: CallLog) -> None:
        self._code = code
        self._time_limit_s = time_limit_s
        self._log = log
        self._functions: _FunctionProcess | None = None

    def call(self, one: CallbackConfig, facts: Mapping[str, Any]) -> str:
        """Call one and wait for its end; return why it failed, or nothing."""
        try:
            if one.function is not None:
                problem = self._call_function(one.function, facts)
            else:
                problem = self._run_command(one.argv, facts)
        except (OSError, ValueError) as error:  # ValueError: a NUL, or half a character
            problem = f"cannot be started: {getattr(error, 'strerror', None) or error}"
        return problem[:MOST_TEXT]

    def close(self) -> None:
        """End the process of functions. Idempotent."""
        process, self._functions = self._functions, None
        if process is not None:
            process.close(_END_S)

    def _call_function(self, function: str, facts: Mapping[str, Any]) -> str:
        if self._functions is None:
            self._functions = _FunctionProcess(self._code, self._time_limit_s, self._log)
        answer = self._functions.ask({"function": function, "facts": facts}, self._time_limit_s)
        if isinstance(answer, str):
            self._functions.close(0.0)
            self._functions = None
            return answer
        return str(answer.get("error") or "")

    def _run_command(self, argv: list[str], facts: Mapping[str, Any]) -> str:
        environment = {**os.environ, "PATH": path_with(self._code), **_variables(facts)}
        with tempfile.TemporaryFile() as given:
            given.write(_as_json(facts))
            given.seek(0)
            process, output = _started(argv, self._code, given.fileno(), environment)
        self._log.follow(output)
        try:
            code = process.wait(self._time_limit_s)
        except subprocess.TimeoutExpired:
            _end(process)
            return _too_long(self._time_limit_s)
        return "" if code == 0 else f"exit code {code}" if code > 0 else f"signal {-code}"


class _FunctionProcess:
    """The process that has the functions. One call at a time."""

    def __init__(self, code: Path, time_limit_s: float, log: CallLog) -> None:
        root = str(Path(__file__).resolve().parents[3])
        path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), root)))
        asks, self._asked = os.pipe()
        self._answers, answers = os.pipe()
        try:
            script = str(Path(__file__).with_name("function_process.py"))  # loads nothing of ours
            numbers = map(str, (asks, answers, time_limit_s))
            argv = [sys.executable, "-P", script, str(code), *numbers]
            environment = {**os.environ, "PYTHONPATH": path}
            process, output = _started(argv, code, None, environment, (asks, answers))
        except OSError:
            os.close(self._asked)
            os.close(self._answers)
            raise
        finally:
            os.close(asks)
            os.close(answers)
        self._process = process
        log.follow(output)

    def ask(self, call: Mapping[str, Any], time_limit_s: float) -> dict[str, Any] | str:
        """Have a function called; its answer, or why there is none."""
        until = time.monotonic() + time_limit_s
        os.set_blocking(self._asked, False)
        left, answer = _as_json(call) + b"\n", b""
        while not answer.endswith(b"\n"):
            rest = until - time.monotonic()
            writes = [self._asked] if left else []
            ready, free, _ = select.select([self._answers], writes, [], max(0.0, rest))
            if not ready and not free:
                return _too_long(time_limit_s)
            try:
                if free:
                    left = left[os.write(self._asked, left) :]
                content = os.read(self._answers, 1 << 16) if ready else None
            except BrokenPipeError:
                content = b""
            if content == b"":
                return "its process has ended"
            answer += content or b""
        try:
            return dict(json.loads(answer))
        except ValueError:  # the function has written there itself
            return "its process has answered nonsense"

    def close(self, grace_s: float) -> None:
        """Let it end by itself for a moment, then kill it."""
        os.close(self._asked)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        _end(self._process)
        os.close(self._answers)


def _started(
    argv: list[str],
    code: Path,
    given: int | None,
    environment: Mapping[str, str],
    files: tuple[int, ...] = (),
) -> tuple[subprocess.Popen[bytes], int]:
    """Start a process in a group of its own; it, and the pipe that it prints to."""
    output, prints = os.pipe()
    try:
        process = subprocess.Popen(
            argv,
            cwd=code,
            env=environment,
            stdin=subprocess.DEVNULL if given is None else given,
            stdout=prints,
            stderr=prints,
            pass_fds=files,
            start_new_session=True,
        )
    except OSError:
        os.close(output)
        raise
    finally:
        os.close(prints)
    return process, output


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with all that it has started, if it is there."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _too_long(seconds: float) -> str:
    return f"it took longer than {seconds:g} s, and was ended ('timeLimit')"


def _as_json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode()


def _variables(facts: Mapping[str, Any]) -> dict[str, str]:
    """The variables of a command: ours, and the plain facts. They are text, and no code."""
    found = {"BEQUEATH_EVENT": str(facts["event"])}
    for name in _VARIABLES:
        value = facts.get(name)
        if value is not None:
            text = str(value).replace("\0", " ")[:4096]
            found[f"BEQUEATH_EVENT_{name.upper()}"] = text
    return found
