"""Errors as somebody who writes Python reads them: one error, without our frames, in its words."""

from __future__ import annotations

import functools
import re
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

from dispatcher.errors import InternalError
from trial_runtime.errors import BequeathError

_C = TypeVar("_C", bound=type)

#: Folders whose code is none of the user's.
_NOT_USERS: Final = (
    "<frozen",
    *(
        f"{Path(__file__).parents[2] / name}/"
        for name in ("bequeath", "dispatcher", "trial_runtime", "tuners")
    ),
    *(f"{sysconfig.get_path(name)}/" for name in ("stdlib", "purelib", "platlib")),
)

#: Commands, and the methods that do the same.
_METHODS: Final = {
    "kill": "experiment.kill()",
    "resume": "experiment.start()",
    "resume --take-over": "experiment.start(take_over=True)",
    "run FILE": "Experiment(...).run()",
    "status": "experiment.status()",
    "stop": "experiment.stop()",
    "top": "experiment.status()",
    "trial ls": "experiment.trials()",
    "why": "experiment.why()",
}

#: A command, with what stands behind it up to the end of its clause.
_COMMAND: Final = re.compile(r"\bbequeath ([a-z][\w. -]*[\w-])")

#: The id of an experiment, or the number of a trial.
_SUBJECT: Final = re.compile(r"\S*-\w{6}|\d+")


#: A key of an experiment file in its own spelling, and the place of one in a file.
_KEY: Final = re.compile(r"'([a-z]+(?:[A-Z][a-z0-9]*)+)'")
_IN_FILE: Final = re.compile(r":\d+:\d+: ")

#: Advice for errors whose place is a file, and that have none for Python, by their first words.
_ADVICE: Final = {
    "does not exist: ": "give the path of an experiment file, or keywords: "
    "Experiment(trial=train, tuner='TPE', search_space={...}, trial_concurrency=2)",
    "'trial_function' names the module": "give the function itself, trial=train, or the folder of "
    "its module, trial_code_directory='...'",
    "'search_space' must be": "write, for example, search_space={'x': bq.uniform(0, 1)}",
    "this study has no trial": "study.ask() returns a trial, and study.unfinished has those that "
    "go on",
}


def in_python(text: str) -> str:
    """Return a text with calls of Python in place of commands, where there are such calls."""
    return _COMMAND.sub(_as_call, text)


def translate(error: BequeathError) -> None:
    """Give an error the words of Python: calls for commands, and names of keywords for keys unless
    it is about a place in a file."""
    in_file = _IN_FILE.search(str(error)) is not None
    error.message, error.hint = in_python(error.message), in_python(error.hint)
    if not in_file:
        error.message, error.hint = _KEY.sub(_snake, error.message), _KEY.sub(_snake, error.hint)
    if not error.hint:
        advice = (hint for start, hint in _ADVICE.items() if error.message.startswith(start))
        error.hint = next(advice, "")


def _snake(key: re.Match[str]) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", key[0])


def _as_call(command: re.Match[str]) -> str:
    tokens = command[1].split(" ")
    for many in (3, 2, 1):
        name, rest, options = " ".join(tokens[:many]), tokens[many:], []
        while rest and (rest[0].startswith("--") or rest[0] == "FILE"):
            options.append(rest.pop(0))
        call = _METHODS.get(" ".join([name, *options])) or _operation(name, options)
        if call is not None:
            if rest and _SUBJECT.fullmatch(rest[0]):
                rest.pop(0)
            return " ".join([call, *rest])
    return command[0]


def _operation(name: str, options: list[str]) -> str | None:
    """Return the call of an operation of the table, if it has one of this name."""
    from dispatcher.operations.table import OPERATIONS

    if name not in OPERATIONS:
        return None
    given = "".join(f", {each.strip('-').replace('-', '_')}=True" for each in options)
    return f"experiment.perform({name!r}{given})"


def speaks_python(owner: _C) -> _C:
    """Decorate a class: its public methods raise errors for people in Python's words, and their
    tracebacks end at the caller's line.

    ``_OTHERS_NAMES`` of the class has arguments as another library names them, and what is written
    in their place: Python's own error of such an argument gets that as a note."""
    for name, member in list(vars(owner).items()):
        if name.startswith("_") and name not in ("__init__",):
            continue
        if isinstance(member, classmethod):
            setattr(owner, name, classmethod(_speaking(member.__func__)))
        elif isinstance(member, property):
            getter = None if member.fget is None else _speaking(member.fget)
            setattr(owner, name, property(getter, doc=member.__doc__))
        elif callable(member):
            setattr(owner, name, _speaking(member))
    return owner


def warn(text: str) -> None:
    """Warn at the line of the user's code that has called us, however many frames are ours."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_NOT_USERS):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)


def _has_users_code(trace: TracebackType | None) -> bool:
    """Whether functions of the user's, such as a trial of a study, are below our call."""
    frames = () if trace is None else traceback.walk_tb(trace.tb_next)
    return any(not frame.f_code.co_filename.startswith(_NOT_USERS) for frame, _ in frames)


def _speaking(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            is_call = error.__traceback__ is not None and error.__traceback__.tb_next is None
            others = getattr(args[0], "_OTHERS_NAMES", {}) if is_call and args else {}
            for name, ours in others.items():
                if f"unexpected keyword argument {name!r}" in str(error):
                    error.add_note(f"write {ours}")
            raise
        except InternalError:
            raise  # a fault of ours, which somebody has to find
        except BequeathError as error:
            from tuners.space import SpaceError

            if not isinstance(error, SpaceError):  # that one is about names of the user's own
                translate(error)
            if _has_users_code(error.__traceback__):
                raise
            raise error.with_traceback(None) from None

    return call
