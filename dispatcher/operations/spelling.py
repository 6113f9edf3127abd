"""The command that stands for an operation, as one would type it: for a page beside its buttons."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from dispatcher.operations.arguments import DrawPicture, ImportResults
from dispatcher.operations.operation import A, Operation, R, Subject


class Spelling(NamedTuple):
    """A command, and how arguments are written behind it.

    ``bare`` are written as they are, in this order; ``options`` each behind its option. Of a flag
    that is on by itself the option is the one that turns it off. Others have no place in a command.
    """

    command: str
    bare: tuple[str, ...] = ()
    options: Mapping[str, str] = MappingProxyType({})
    about: str = ""  # the option behind which the experiment is named; empty: it is written bare


_OF: Final = "-e"

_RESULT: Final = {"metric": "--metric", "mode": "--mode", "seed": "--seed"}
_SOME: Final = {"parameters": "-p", "many": "-n", **_RESULT}

#: Options of plots, by kind.
_PLOTS: Final[dict[str, dict[str, str]]] = {
    "importance": _RESULT,
    "slice": _SOME,
    "contour": {"x": "--x", "y": "--y", **_RESULT},
    "parallel": _SOME,
    "pareto": {"objectives": "--objective"},
    "hypervolume": {"objectives": "--objective", "reference": "--reference"},
    "timeline": {"worker": "--worker"},
    "slots": {"last": "--last"},
}

#: By operation. Only what is on beside the command: those without arguments need no entry.
_SPELLINGS: Final = {
    "experiment list": Spelling("experiment list", options={"everywhere": "--all"}),
    "top": Spelling("top --json"),
    "best": Spelling("best", options={"limit": "-n"}),
    "lineage": Spelling("lineage", options={"root": "--trial"}),
    "experiment csv": Spelling("experiment export --format csv"),
    **{
        f"plot {kind}": Spelling(f"plot {kind} --json", options=options)
        for kind, options in _PLOTS.items()
    },
    "resume": Spelling("resume --background"),
    "take over": Spelling("resume --take-over --background"),
    "stop": Spelling(
        "stop", options={"drain": "--drain", "grace_s": "--grace", "wait": "--no-wait"}
    ),
    "experiment at": Spelling("experiment at", ("time",), {"limit": "-n"}, about=_OF),
    "experiment update": Spelling("experiment update", ("key", "value"), about=_OF),
    "experiment verify": Spelling("experiment verify", options={"rebuild": "--rebuild"}),
    "trial ls": Spelling(
        "trial ls",
        options={
            "state": "--state",
            "failed": "--failed",
            "live": "--live",
            "parent": "--parent",
            "where": "--where",
            "sort": "--sort",
            "reverse": "--reverse",
            "limit": "-n",
        },
    ),
    "trial files": Spelling(
        "trial files", options={"attempt": "--attempt", "links": "--links"}, about=_OF
    ),
    "trial show": Spelling("trial show", about=_OF),
    "trial tensors": Spelling("trial tensors", options={"limit": "-n"}, about=_OF),
    "trial kill": Spelling("trial kill", ("trials",), about=_OF),
    "trial submit": Spelling("trial submit", ("parameters",), about=_OF),
    "leaderboard": Spelling(
        "leaderboard",
        options={
            "group": "--group",
            "dataset": "--dataset",
            "tuner": "--tuner",
            "tag": "--tag",
            "name": "--name",
            "starred": "--starred",
            "everywhere": "--all",
        },
    ),
    "trial note": Spelling("trial note", ("text",), about=_OF),
    "trial note remove": Spelling("trial note", options={"number": "--remove"}, about=_OF),
    "trial tag": Spelling("trial tag", ("add",), {"remove": "--remove"}, about=_OF),
    "trial star": Spelling("trial star", about=_OF),
    "trial unstar": Spelling("trial star --off", about=_OF),
    "experiment note": Spelling("experiment note", ("text",), about=_OF),
    "experiment note remove": Spelling(
        "experiment note", options={"number": "--remove"}, about=_OF
    ),
    "experiment tag": Spelling("experiment tag", ("add",), {"remove": "--remove"}, about=_OF),
    "experiment unstar": Spelling("experiment star --off"),
    "weights plan": Spelling(
        "weights gc --dry-run", options={"keep": "--keep", "keep_versions": "--keep-versions"}
    ),
    "weights gc": Spelling(
        "weights gc", options={"keep": "--keep", "keep_versions": "--keep-versions"}
    ),
    "weights versions": Spelling("weights versions", options={"store": "--store"}),
    "weights pin": Spelling("weights pin", options={"note": "--note"}, about=_OF),
    "weights unpin": Spelling("weights unpin", about=_OF),
    "weights export": Spelling("weights export", options={"file": "-o", "key": "--key"}, about=_OF),
    "infer inputs": Spelling("trial inputs", about=_OF),
    "infer": Spelling("infer", ("request",), {"timeout_s": "--timeout"}, about=_OF),
    "experiment backup": Spelling("experiment backup", ("destination",), {"weights": "--weights"}),
}


def command_line(
    operation: Operation[A, R],
    arguments: A | None = None,
    *,
    experiment: str = "",
    trial: int | None = None,
) -> str:
    """Return the command that does the same, quoted for a shell; empty if there is none.

    Args:
        operation: a row of the table.
        arguments: of the operation's own type; None: the usual ones.
        experiment: its id.
        trial: its number, where it is about one.
    """
    given = operation.arguments() if arguments is None else arguments
    if isinstance(given, ImportResults):
        return ""  # a file holds them
    spelling = _SPELLINGS.get(operation.name, Spelling(operation.verbs[0]))
    if isinstance(given, DrawPicture):
        spelling = Spelling(f"plot {given.kind}", options=_PLOTS.get(given.kind, {}))
        if given.root is not None:
            spelling = Spelling(f"lineage --png {experiment}.png", options={"root": "--trial"})
    words = ["bequeath", *spelling.command.split()]
    if operation.subject is Subject.TRIAL:
        words.append(str(trial))
    after = [text for name in spelling.bare for text in _texts(getattr(given, name))]
    named = [] if operation.subject is Subject.MACHINE else [experiment]
    last = []
    if any(text.startswith("-") for text in after):  # no option, whatever it looks like
        last, after = ["--", *after], []
    words += [*after, spelling.about, *named] if spelling.about else [*named, *after]
    for name, option in spelling.options.items():
        words += _option(option, getattr(given, name))
    return shlex.join([*words, *last])


def _option(option: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [option] if value is not option.startswith("--no-") else []
    if value is None or value in ("", ()):
        return []
    return [word for text in _texts(value) for word in (option, text)]


def _texts(value: Any) -> list[str]:
    if isinstance(value, list | tuple):
        return [str(one) for one in value]
    return [value if isinstance(value, str) else json.dumps(value)]
