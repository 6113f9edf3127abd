"""The process of the functions of callbacks: a script with the arguments CODE ASKS ANSWERS LIMIT.

It reads calls from one pipe and answers on another, a line of JSON each. All that functions print
goes where its output goes. When nobody asks any more it ends: at once, or after the time for the
call that it is in.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from functools import reduce
from importlib import import_module
from queue import SimpleQueue
from typing import Any

from trial_runtime.namesakes import admit, users_own
from trial_runtime.nesting import importing


def _function(name: str) -> Any:
    module, _, path = name.partition(":")
    with importing(module):  # a module that starts an experiment would start it again and again
        found = import_module(module)
    return reduce(getattr, path.split("."), users_own(found))


def _call(function: str, facts: dict[str, Any]) -> dict[str, str]:
    """Call it; its error in one line, if it has raised. It may raise anything, ``SystemExit``
    too."""
    try:
        _function(function)(facts)
        return {}
    except BaseException as error:  # noqa: BLE001 - code of the user's
        sys.stderr.write(traceback.format_exc())  # in one piece
        return {"error": "".join(traceback.format_exception_only(error)).strip()[:2000]}
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()


def _read(asks: int, limit_s: float, calls: SimpleQueue[bytes]) -> None:
    """Pass calls on; end the process some time after the last one could come."""
    with os.fdopen(asks, "rb") as lines:
        for line in lines:
            calls.put(line)
    calls.put(b"")
    time.sleep(limit_s)
    os.killpg(0, signal.SIGKILL)


def main(code: str, asks: int, answers: int, limit_s: float) -> None:
    """Serve calls until nobody asks any more.

    Args:
        code: folder of the functions' modules.
        asks: descriptor of the pipe that calls come by, a line of JSON each.
        answers: descriptor of the pipe for what came of each.
        limit_s: seconds that go on after the last call could come.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for its parent
    for pipe in (asks, answers):
        os.set_inheritable(pipe, False)
    admit(code)
    sys.path.insert(0, code)
    calls: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read, args=(asks, limit_s, calls), daemon=True).start()
    process = os.getpid()
    while line := calls.get():
        call = json.loads(line)
        answer = _call(call["function"], call["facts"])
        if os.getpid() != process:  # a fork that came back from the function, as the caller does
            os._exit(0)
        with contextlib.suppress(BrokenPipeError):
            os.write(answers, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
