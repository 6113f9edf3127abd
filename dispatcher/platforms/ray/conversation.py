"""The conversation with a driver program, which has the Ray that this process has not.

It is started at the first question, asked one thing at a time, and started anew after it has ended
or hung: actors are detached, so that none of them is lost with it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Protocol

from dispatcher.errors import PassingBackendError, PermanentBackendError
from dispatcher.platforms.ray.section import RayServiceConfig

#: Longest time of an answer (seconds): Ray itself waits for a head that is away.
LIMIT_S = 60.0

#: A place at which nobody listens is given up after so long (seconds).
DIAL_S = 10.0

#: Most of an answer that is read (bytes).
MOST_BYTES = 16 << 20

#: The driver's log is begun anew when it is longer (bytes).
MOST_LOG_BYTES = 4 << 20

_PROGRAM = Path(__file__).parent / "driver.py"
_BESIDE = tuple(str(_PROGRAM.with_name(name)) for name in ("holder.py", "crew.py", "node_news.py"))
_CLUSTER = _PROGRAM.with_name("cluster.py")


class Conversation(Protocol):
    """Asks a driver of Ray."""

    def ask(self, method: str, **arguments: object) -> Any:
        """Ask one thing and wait for the answer.

        Args:
            method: of the driver.
            arguments: of it, as JSON can carry them.

        Raises:
            PassingBackendError: there is no answer; what was asked for may have been done.
            PermanentBackendError: somebody has to change something first; nothing was done.
        """
        ...

    def close(self) -> None:
        """End the driver; actors go on."""
        ...


class RayConversation:
    """See :class:`Conversation`.

    Args:
        python: a Python with Ray.
        address: of the cluster.
        runtime_env: for its actors.
        log: file for what the driver and Ray print.
        program: the driver's file.
        limit_s: longest time of an answer (seconds).
        local: the folder of a cluster of our own; None: it is somebody else's.
    """

    def __init__(
        self,
        python: str,
        address: str,
        runtime_env: dict[str, Any],
        log: Path,
        program: Path = _PROGRAM,
        limit_s: float = LIMIT_S,
        local: Path | None = None,
    ) -> None:
        self._python = python
        self._address = address
        self._runtime_env = runtime_env
        self._log = log
        self._program = program
        self._limit_s = limit_s
        own = {"folder": str(local), "program": str(_CLUSTER)}
        self._local = {} if local is None else {"local": own}
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self._rest = b""

    def ask(self, method: str, **arguments: object) -> Any:
        """See :meth:`Conversation.ask`."""
        if self._process is None or self._process.poll() is not None:
            self.close()
            if not self._local:
                _dial(self._address)
            self._start()
            try:
                self._exchange(
                    "connect",
                    address=self._address,
                    namespace="bequeath",
                    runtime_env=self._runtime_env,
                    **self._local,
                )
            except BaseException:
                self.close()
                raise
        return self._exchange(method, **arguments)

    def close(self) -> None:
        """See :meth:`Conversation.close`."""
        process, self._process, self._rest = self._process, None, b""
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _start(self) -> None:
        program = self._program.read_text(encoding="utf-8")
        command = [self._python, "-c", program, *_BESIDE]
        self._log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = "wb" if _size(self._log) > MOST_LOG_BYTES else "ab"
        try:
            with open(self._log, mode) as log:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    cwd="/",  # which the driver looks for modules in
                    env=variables_for_driver(dict(os.environ)),
                    start_new_session=True,
                )
        except OSError as error:
            raise PermanentBackendError(
                f"{self._python} cannot be run: {error.strerror}",
                hint="'python' names a Python on this machine that has Ray",
                where="ray",
            ) from error

    def _exchange(self, method: str, **arguments: object) -> Any:
        number = next(self._numbers)
        line = json.dumps({"id": number, "ask": method, **arguments})
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise self._gone() from None
        answer = self._read(number, silence=self._silence(method))
        if "error" not in answer:
            return answer["answer"]
        kind = PassingBackendError if answer["passing"] else PermanentBackendError
        hint = "" if answer["passing"] else _hint(answer["error"])
        raise kind(answer["error"], hint=hint, where="ray")

    def _silence(self, method: str) -> str:
        """Return what it means that there is no answer: who listens there may be no Ray."""
        if method != "connect" or self._local:
            return "Ray has not answered"
        return f"no Ray cluster answers at {self._address}: nothing was heard"

    def _read(self, number: int, *, silence: str) -> dict[str, Any]:
        """Read the answer of this number; a driver that has none in time is ended.

        Args:
            number: of the question.
            silence: what it means that there is none.
        """
        assert self._process is not None
        out = self._process.stdout
        assert out is not None
        until = time.monotonic() + self._limit_s
        with selectors.DefaultSelector() as ready:
            ready.register(out, selectors.EVENT_READ)
            while True:
                line, newline, rest = self._rest.partition(b"\n")
                if newline:
                    self._rest = rest
                    answer: dict[str, Any] = json.loads(line)
                    if answer["id"] == number:
                        return answer
                    continue
                left_s = until - time.monotonic()
                if left_s <= 0 or len(self._rest) > MOST_BYTES:
                    self.close()
                    raise PassingBackendError(
                        f"{silence} within {self._limit_s:.0f} s", where="ray"
                    )
                if ready.select(left_s):
                    part = os.read(out.fileno(), 1 << 16)
                    if not part:
                        raise self._gone()
                    self._rest += part

    def _gone(self) -> PassingBackendError:
        """The error of a driver that has ended by itself: Ray ends processes that it has lost."""
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        code = self._process.poll()
        self.close()
        noted = self._log != Path(os.devnull)
        hint = f"see {self._log}" if noted else "does 'python' name a Python with Ray?"
        text = f"its driver has ended with status {code}"
        return PassingBackendError(text, hint=hint, where="ray")


def _dial(address: str) -> None:
    """See that somebody listens there: Ray itself would wait for minutes."""
    if address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), DIAL_S).close()
    except OSError as error:
        text = f"no Ray cluster answers at {address}: {error.strerror or error}"
        raise PassingBackendError(text, where="ray") from error


def variables_for_driver(variables: dict[str, str]) -> dict[str, str]:
    """The variables that a driver gets, of those that there are: none of them shapes our Python,
    and Ray sets nothing up for programs beside it."""
    ours = {"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV"}
    kept = {name: value for name, value in variables.items() if name not in ours}
    return {**kept, "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}


def conversation_about(
    section: RayServiceConfig,
    log: Path,
    limit_s: float = LIMIT_S,
    local: Path | None = None,
) -> RayConversation:
    """Return a conversation about the cluster of a section.

    Args:
        section: the service's part of the experiment file.
        log: file for what the driver and Ray print.
        limit_s: longest time of an answer (seconds).
        local: the folder of the cluster, if it is one that is started for the section.
    """
    return RayConversation(
        section.python or sys.executable,
        section.address,
        section.runtime_env,
        log,
        limit_s=limit_s,
        local=local if section.starts else None,
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _hint(text: str) -> str:
    if "has no Ray" in text:
        return "install it there, or name another one by 'python'"
    if "mismatch" in text:
        return "'python' names one with Ray and Python in the cluster's versions"
    return ""
