"""The actor that holds a place in the cluster, with one agent in it.

Ray carries this module's code there by value, so that nodes need nothing of ours for it: the
standard library of any Python from 3.9 on is all that it needs.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

#: The agent is killed when the thread that has started it is gone, with whatever killed it: by
#: ``ray kill``, or since its node is lost for Ray. Two agents would share a GPU otherwise.
_LAUNCH = """
import ctypes, os, signal, sys
signal.pthread_sigmask(signal.SIG_SETMASK, [])
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit(f"{sys.argv[2]} cannot be run there: {error.strerror}")
"""


class Holder:
    """Holds a place in the cluster, with one agent in it, until that has ended. An actor.

    Args:
        order: as :class:`RayDriver` got it.
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self._path = Path(order["home"], order["name"] + ".config")
        self._stop: float | None = None  # when the agent is killed at last (monotonic)
        self._ends_at = time.monotonic() + order["wall_s"] if order["wall_s"] else None
        self._outcome: dict[str, Any] | None = None
        threading.Thread(target=self._run, name="agent", daemon=True).start()

    async def where(self) -> dict[str, Any]:
        """Say where this is, and when it has to end."""
        left_s = None if self._ends_at is None else self._ends_at - time.monotonic()
        own = {"place": os.uname().nodename, "nodes": _nodes(), "pid": os.getpid()}
        return {**own, "ends_in_s": left_s}

    async def watch(self) -> dict[str, Any]:
        """Wait for the end of the agent, and say how it was."""
        while self._outcome is None:
            await asyncio.sleep(0.1)
        return self._outcome

    async def tell(self, config: str) -> None:
        """Write the agent's configuration anew, if it is there still."""
        if self._path.exists():
            self._write(config)

    async def stop(self, grace_s: float) -> None:
        """Ask the agent to end, and kill it after a grace."""
        until = time.monotonic() + grace_s
        self._stop = until if self._stop is None else min(self._stop, until)

    def _run(self) -> None:
        try:
            self._outcome = self._hold()
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            reason = f"{os.uname().nodename}: {where}{error.strerror}"
            self._outcome = {"gone": "failed", "reason": reason}
        time.sleep(self._order["linger_s"])  # so that whoever watches gets its answer
        os._exit(0)

    def _hold(self) -> dict[str, Any]:
        """Run the agent, and say how it ended."""
        order = self._order
        if not Path(order["home"]).is_dir():
            reason = f"{os.uname().nodename} does not see the folder {order['home']}"
            return {"gone": "failed", "reason": reason}
        self._write(order["config"])
        command = [order["python"] or sys.executable, *order["arguments"], str(self._path)]
        launch = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()), *command]
        paths = [order["environment"].get("PYTHONPATH"), os.environ.get("PYTHONPATH")]
        extra = {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}
        with open(order["log"], "ab") as log:
            begin = log.tell()
            agent = subprocess.Popen(
                launch,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **order["environment"], **extra},
                start_new_session=True,  # Linux shares CPU out by session: not with all of Ray's
            )
        asked = ""
        while agent.poll() is None:
            now = time.monotonic()
            if not asked and self._ends_at is not None and now >= self._ends_at:
                asked, self._stop = "wall time", now + order["grace_s"]
                agent.terminate()
            elif not asked and self._stop is not None:
                asked = "cancelled"
                agent.terminate()
            if self._stop is not None and now >= self._stop:
                agent.kill()
            time.sleep(0.05)
        with contextlib.suppress(OSError):
            self._path.unlink()  # it holds keys, and an agent that was killed leaves it
        if asked or agent.returncode == 0:
            return {"gone": asked or "finished", "reason": ""}
        code = agent.returncode
        how = f"status {code}" if code > 0 else f"signal {signal.Signals(-code).name}"
        line = _last_line(order["log"], begin)
        return {"gone": "failed", "reason": f"the agent ended with {how}" + (line and f": {line}")}

    def _write(self, config: str) -> None:
        new = self._path.with_suffix(".new")
        new.unlink(missing_ok=True)
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(file, "wb") as out:
            out.write(base64.b64decode(config))
        new.replace(self._path)


def _nodes() -> list[str]:
    """Ray's number of this node; none if it does not say."""
    ray = sys.modules.get("ray")
    return [] if ray is None else [str(ray.get_runtime_context().get_node_id())]


def _last_line(path: str, begin: int) -> str:
    """The last line that was written behind this place."""
    with open(path, "rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(begin, end - 4096))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")[-300:]
