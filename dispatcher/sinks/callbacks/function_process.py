"""The process in which functions of callbacks run: a script with the arguments CODE ASKS ANSWERS.

It reads calls from one pipe and answers on another, a line of JSON each. All that functions print
goes where its output goes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import traceback
from functools import reduce
from importlib import import_module
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
        traceback.print_exc()
        return {"error": "".join(traceback.format_exception_only(error)).strip()[:2000]}
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()


def main(code: str, asks: int, answers: int) -> None:
    """Serve calls until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever has started it
    for pipe in (asks, answers):
        os.set_inheritable(pipe, False)
    admit(code)
    sys.path.insert(0, code)
    with os.fdopen(asks, "rb") as calls:
        for line in calls:
            call = json.loads(line)
            answer = _call(call["function"], call["facts"])
            os.write(answers, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
