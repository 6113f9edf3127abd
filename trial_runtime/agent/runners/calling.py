"""Calling a trial that is a Python function: its outcome as a value, or as the end of a process.

Imports only what a fresh trial can afford: ``traceback`` comes when something fails.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import msgspec

from trial_runtime import session as sessions
from trial_runtime.failpoints import failpoint
from trial_runtime.namesakes import admit, users_own
from trial_runtime.nesting import importing

_OURS = __file__.removesuffix("agent/runners/calling.py")


class Result:
    """The outcome of a call: a returned value, or an exit code with the text to show.

    Args:
        value: the returned value.
        code: the exit status that a process of its own would have.
        text: for standard error, such as a traceback.
        out_of_memory: whether memory ran out.
        spent: whether the process should not be used again.
    """

    __slots__ = ("code", "out_of_memory", "spent", "text", "value")

    def __init__(
        self,
        value: Any = None,
        code: int = 0,
        text: str = "",
        *,
        out_of_memory: bool = False,
        spent: bool = False,
    ) -> None:
        self.value = value
        self.code = code
        self.text = text
        self.out_of_memory = out_of_memory
        self.spent = spent


def put_code_first(code_directory: str) -> None:
    """Put the user's modules first on the path, as if the script lay in their folder.

    The modules that we need are imported before, so a user's module of any name harms nobody.
    """
    import trial_runtime.api
    import trial_runtime.local_channel  # noqa: F401 - which a session needs sooner or later

    if not sys.path or sys.path[0] != code_directory:
        admit(code_directory)
        sys.path.insert(0, code_directory)


def find(call: str) -> Callable[..., Any]:
    """The function that ``module:function`` names. Raises whatever the import raises."""
    module_name, _, path = call.partition(":")
    target: Any = sys.modules.get(module_name)
    if target is None:  # it was not preloaded
        with importing(module_name):
            target = import_module(module_name)
    target = users_own(target)
    for part in path.split("."):
        target = getattr(target, part)
    if not callable(target):
        raise TypeError(f"{call} is not callable but {type(target).__name__}")
    return target  # type: ignore[no-any-return]


def preload(names: tuple[str, ...]) -> None:
    """Import modules before the first trial needs them. Raises whatever an import raises."""
    for name in names:
        with importing(name):
            import_module(name)


def invoke(function: Callable[..., Any], parameters: Any) -> Any:
    """Call with the parameters if the function takes an argument."""
    code = getattr(function, "__code__", None)
    if code is not None:
        bound = 1 if getattr(function, "__self__", None) is not None else 0
        takes = code.co_argcount > bound or bool(code.co_flags & 0x04)
    else:
        import inspect

        takes = bool(inspect.signature(function).parameters)
    return function(parameters) if takes else function()


def attempt_call(work: Callable[[], Any]) -> Result:
    """Do the work; an exception becomes a result, as it would end an interpreter."""
    try:
        return Result(work())
    except SystemExit as error:
        if error.code is None:
            return Result(code=0)
        if isinstance(error.code, int):
            return Result(code=error.code & 0xFF)
        return Result(code=1, text=str(error.code))
    except MemoryError:
        return Result(code=1, text=_trimmed(), out_of_memory=True, spent=True)
    except Exception:  # noqa: BLE001 - the user's code: shown with its traceback, exit code 1
        return Result(code=1, text=_trimmed())
    except BaseException:  # noqa: BLE001 - KeyboardInterrupt and the like: as above
        return Result(code=1, text=_trimmed(), spent=True)


def _trimmed() -> str:
    """The traceback of the exception being handled, without our frames around the author's."""
    import traceback

    from trial_runtime.cells import in_cells, name_cells

    kind, error, trace = sys.exc_info()
    assert kind is not None
    assert error is not None
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    shown = traceback.TracebackException(kind, error, trace)
    if kind.__module__.startswith("trial_runtime."):
        # We refused something on purpose: what matters is where the author asked for it.
        while shown.stack and _is_ours(shown.stack[-1].filename):
            shown.stack.pop()
    name_cells(shown, error)
    lines = shown.format() if shown.stack else shown.format_exception_only()
    return in_cells("".join(lines)).rstrip()


def _is_ours(filename: str) -> bool:
    return filename.startswith((_OURS, "<frozen importlib"))


def flush_streams() -> None:
    """Flush the output of the user's code; a broken stream is no fault of the trial."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass


def leave(code: int) -> None:
    """End the process as the interpreter would, but without its slow dismantling.

    Threads that are no daemons are waited for, exit handlers run, streams are flushed. This
    saves the milliseconds in which objects are freed one by one.
    """
    import os
    import threading

    shut_down = getattr(threading, "_shutdown", None)
    if shut_down is not None:
        shut_down()
    import atexit

    run_exit_functions = getattr(atexit, "_run_exitfuncs", None)
    if run_exit_functions is not None:
        run_exit_functions()
    flush_streams()
    failpoint("trial.leaving")
    os._exit(code)


def main() -> None:
    """Run the function that the session names; ends the process."""
    session = sessions.current()
    assert isinstance(session, sessions.AgentSession)
    leave(run(session))


def run(session: sessions.AgentSession) -> int:
    """Call the session's function and report its result; returns the exit code."""
    file = session.file
    put_code_first(file.code_directory)
    result = attempt_call(
        lambda: invoke(find(file.call), msgspec.json.decode(file.parameters)),
    )
    if result.code == 0:
        result = attempt_call(lambda: report_returned(session, result.value))
    if result.text:
        sys.stderr.write(result.text + "\n")
    return result.code


def report_returned(session: sessions.AgentSession, value: Any) -> None:
    """Report a returned number or mapping as the final result, unless there is one already."""
    if value is None or session.final_reported:
        return
    session.report_final(value)
