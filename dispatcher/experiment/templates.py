"""Parameters named in a command, as ``${trialParameters.NAME}``, and what bash is given for them.

No value becomes a part of the shell's text: bash expands variables, which the agent sets, and an
expansion within double quotes is one word whatever is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dispatcher.experiment.problems import Misfit
from trial_runtime.parameter_text import TEMPLATE, variable_of

#: All arguments that bash was given, for a command that does not say where they go.
ALL_ARGUMENTS = '"$@"'


class PlacedName(NamedTuple):
    """A parameter named in a command: where, and within which quotes (empty: none)."""

    name: str
    start: int
    end: int
    quotes: str


def names_in(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the parameters that texts name, each once.

    >>> names_in(["train --lr=${trialParameters.lr}", "none"])
    ('lr',)
    """
    return tuple(dict.fromkeys(match[1] for text in texts for match in TEMPLATE.finditer(text)))


def placed_names(command: str) -> Iterator[PlacedName]:
    """Yield the parameters that a command names, with the quotes that bash would see there."""
    quotes, place = "", 0
    while place < len(command):
        match = TEMPLATE.match(command, place)
        if match is not None:
            yield PlacedName(match[1], place, match.end(), quotes)
            place = match.end()
            continue
        letter = command[place]
        if letter == "\\" and quotes != "'":
            place += 1  # whatever follows stands for itself
        elif quotes:
            quotes = "" if letter == quotes else quotes
        elif letter in "'\"":
            quotes = letter
        place += 1


def check_quotes(command: str) -> None:
    """Refuse a parameter where bash would expand nothing.

    Raises:
        Misfit: it stands in single quotes.
    """
    for each in placed_names(command):
        if each.quotes == "'":
            raise Misfit(
                f"'trialCommand' has ${{trialParameters.{each.name}}} in single quotes, where bash "
                "takes each letter as it stands",
                at=("trialCommand",),
                hint="write it in double quotes, or in none",
            )


def bash_text(command: str, *, with_arguments: bool) -> str:
    """Return a command as bash is given it.

    Args:
        command: of the experiment file.
        with_arguments: all parameters are arguments, too.

    >>> bash_text("train --lr=${trialParameters.lr}", with_arguments=True)
    'train --lr="${BEQUEATH_PARAMETER_lr}" "$@"'
    """
    parts, before = [], 0
    for each in placed_names(command):
        variable = f"${{{variable_of(each.name)}}}"
        parts += [command[before : each.start], variable if each.quotes else f'"{variable}"']
        before = each.end
    text = "".join([*parts, command[before:]])
    if with_arguments and "$@" not in text:
        return f"{text.rstrip()} {ALL_ARGUMENTS}"
    return text
