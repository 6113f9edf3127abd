"""The command of a container as text for bash, and its variables and resources under our keys."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from dispatcher.experiment.references import ENV, FILE, LITERAL
from dispatcher.experiment.translated_keys import given
from dispatcher.foreign_files.spaces import is_number
from dispatcher.foreign_files.translation import Translation
from trial_runtime.parameter_text import TEMPLATE
from tuners.plain_json import JsonPath

#: A variable in a command of Kubernetes and Vertex AI.
_VARIABLE = r"\$\((?P<variable>[A-Za-z_][A-Za-z0-9_]*)\)"
_TEMPLATE = r"\$\{trialParameters\.(?P<name>[^{}\n]+)\}"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(m|[kMGTPE]|[KMGTPE]i|[eE][0-9]+)?")
_SCALES = {
    "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip

#: What a container may take, and what it is promised; the first one counts.
_KINDS = ("limits", "requests")

#: Memory below which nothing starts is a slip: ``100m`` is a tenth of a byte.
_LEAST_BYTES = 1 << 20


class ShellWords:
    """Writes words of a command for bash; what its parameters and variables stand for is a word.

    Args:
        name_of: returns the text for bash of a parameter, by the name that the file gives it.
        variables: names of the container's variables, which its words may name.
        places: texts that stand for other ones there, with the text for bash of each.
    """

    def __init__(
        self,
        name_of: Callable[[str], str],
        variables: Collection[str] = (),
        places: Mapping[str, str] | None = None,
    ) -> None:
        self._name_of = name_of
        self._variables = variables
        self._places = places or {}
        literal = "|".join(map(re.escape, sorted(self._places, key=len, reverse=True)))
        parts = [_TEMPLATE, _VARIABLE, *([f"(?P<place>{literal})"] if literal else [])]
        self._pattern = re.compile("|".join(parts))
        self.placed: set[str] = set()  # texts that were replaced

    def word(self, word: str) -> str:
        """Return one word."""
        pieces, before = [], 0
        for match in self._pattern.finditer(word):
            text = self._text_of(match.groupdict())
            if text is not None:
                pieces += [_quoted(word[before : match.start()]), text]
                before = match.end()
        pieces.append(_quoted(word[before:]))
        return "".join(pieces) or "''"

    def line(self, command: Sequence[str]) -> str:
        """Return a command of several words."""
        return " ".join(map(self.word, command))

    def _text_of(self, groups: Mapping[str, str | None]) -> str | None:
        """The text for bash of one match; None for one that stands as it is."""
        name, variable, place = (groups.get(key) for key in ("name", "variable", "place"))
        if name is not None:
            return self._name_of(name)
        if place is not None:
            self.placed.add(place)
            return self._places[place]
        return f'"${{{variable}}}"' if variable in self._variables else None


def _quoted(text: str) -> str:
    return shlex.quote(text) if text else ""


def words_of(translation: Translation, value: Any, at: JsonPath) -> list[str]:
    """Return the words of a list; numbers are words, and anything else is refused.

    Args:
        translation: of the file.
        value: the list.
        at: its path in the file.
    """
    words = []
    for each, here in translation.each(value, at):
        plain = isinstance(each, str | int | float) and not isinstance(each, bool)
        text = str(each) if plain else translation.text(each, here)
        words.append(text or "")
    return words


def literal(text: str) -> str:
    """Return a value of a variable that is no reference, whatever it looks like."""
    return f"{LITERAL}{text}" if text.startswith((ENV, FILE, LITERAL)) else text


def environment_of(
    translation: Translation, value: Any, at: JsonPath, path: str
) -> dict[str, tuple[str, JsonPath]]:
    """Return the variables of a container with their values and places.

    Args:
        translation: takes what is refused.
        value: a list of names and values.
        at: its path in the file.
        path: of its entries in the table.
    """
    variables: dict[str, tuple[str, JsonPath]] = {}
    for entry, here in translation.sections(value, at):
        name = translation.get(entry, "name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            wrong = "must have a 'name' that a variable can have"
            translation.draft.refuse(here, wrong, "letters, digits and '_'", is_key=False)
            continue
        if translation.get(entry, "valueFrom") is not None:
            _leave_reference(translation, name, (*here, "valueFrom"))
            continue
        translation.others(entry, ("name", "value"), here, path)
        found = translation.get(entry, "value")
        text = "" if found is None else found
        if isinstance(found, int) and not isinstance(found, bool):
            text = str(found)
        known = translation.text(text, (*here, "value"))
        if known is not None:
            variables[name] = (known, (*here, "value"))
    return variables


def _leave_reference(translation: Translation, name: str, at: JsonPath) -> None:
    """A variable whose value only a cluster has must be among those of the file's own key."""
    own = translation.draft.values.get("trialEnvironment")
    if isinstance(own, Mapping) and name in own:
        translation.draft.drop(at, "'trialEnvironment' of this file counts")
        return
    translation.draft.refuse(
        at,
        f"names what only a cluster knows, for the variable {name!r}",
        f"write 'trialEnvironment: {{{name}: env:{name}}}' at the top of the file",
    )


def put_environment(
    translation: Translation,
    variables: Mapping[str, tuple[str, JsonPath]],
    name_of: Callable[[str], str | None],
    shell: ShellWords,
) -> list[str]:
    """Put variables under our key, and return those that only bash can set, as assignments.

    Args:
        translation: takes the variables.
        variables: of :func:`environment_of`.
        name_of: returns our name of a parameter; None if bash has to write it.
        shell: writes the others for bash.
    """
    assignments = []
    for name, (text, at) in variables.items():
        ours = TEMPLATE.sub(lambda match: _template(name_of(match[1]), match[0]), text)
        for_bash = shell.word(text)
        plain = all(name_of(match[1]) is not None for match in TEMPLATE.finditer(text))
        if plain and not any(place in text for place in shell.placed):
            translation.put(("trialEnvironment", name), literal(ours), at)
        else:
            translation.draft.drop(at, "it stands in front of the command")
            assignments.append(f"{name}={for_bash}")
    return assignments


def _template(ours: str | None, theirs: str) -> str:
    return theirs if ours is None else f"${{trialParameters.{ours}}}"


def quantity(text: Any) -> float | None:
    """Return the number that a quantity of Kubernetes is; None if it is none.

    >>> quantity("500m"), quantity("1Gi"), quantity(2), quantity("many")
    (0.5, 1073741824.0, 2.0, None)
    """
    if is_number(text):
        return float(text)
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    suffix = match[2] or ""
    scale = _SCALES.get(suffix)
    number = float(match[1]) * (scale if scale is not None else float(f"1{suffix}"))
    return number if math.isfinite(number) else None


def put_resources(translation: Translation, resources: Any, at: JsonPath, path: str) -> None:
    """Put what a container may take under our keys for the resources of a trial.

    Args:
        translation: takes them.
        resources: ``limits`` and ``requests``; the first one counts that names a resource.
        at: their path in the file.
        path: their path in the table.
    """
    if not isinstance(resources, Mapping):
        translation.walk(resources, at, path)
        return
    translation.others(resources, _KINDS, at, path)
    seen: set[str] = set()
    for kind in _KINDS:
        section = translation.get(resources, kind)
        if section is not None and not isinstance(section, Mapping):
            translation.walk(section, (*at, kind), path)
        for name, value in given(section):
            here = (*at, kind, name)
            number = quantity(value)
            if number is None:
                translation.draft.refuse(here, f"is no quantity: {value!r}", is_key=False)
            elif name in seen:
                translation.draft.drop(here, "the limit counts")
            else:
                seen.add(name)
                _put_resource(translation, name, number, here)


def _put_resource(translation: Translation, name: str, number: float, at: JsonPath) -> None:
    if name == "cpu":
        translation.put(("trialCpuNumber",), number, at)
    elif name == "memory" and number < _LEAST_BYTES:
        translation.draft.refuse(at, "is less than a mebibyte", "write '512Mi'", is_key=False)
    elif name == "memory":
        translation.put(("trialMemorySize",), int(number), at)
    elif name.endswith(".com/gpu"):
        whole = int(number) if number.is_integer() else number
        translation.put(("trialGpuNumber",), whole, at)
    else:
        translation.draft.drop(at, "it is counted by a cluster only")
