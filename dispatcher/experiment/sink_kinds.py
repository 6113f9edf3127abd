"""Kinds of sinks, found by entry point as platforms are: ours, and those of other packages.

A package names an object in the group :data:`GROUP`, under the name that is written as ``kind``. Of
that object this room reads what :class:`FileSink` has: the class of its section, and its checks.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast

from pydantic import Field, PlainValidator, ValidationError, ValidationInfo
from pydantic_core.core_schema import list_schema

from dispatcher.errors import (
    DispatcherError,
    ExperimentFileError,
    PermanentBackendError,
    UserError,
)
from dispatcher.experiment.entry_points import brought_by, entries_of, is_ours
from dispatcher.experiment.fields import BASE_FOLDER, ChosenSection, Section, fold_word
from dispatcher.experiment.foreign import ForeignObject
from dispatcher.experiment.keys import KeySettler
from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.experiment.problems import ExperimentFileErrors, Misfit
from dispatcher.experiment.references import resolve_reference
from dispatcher.experiment.sentences import explain
from dispatcher.experiment.sink_base import FileSink, SinkConfig
from tuners.plain_json import JsonPath, kind_of, written_path

GROUP = "bequeath.sinks"

PROTOCOL = 1
"""Version of the protocol of such an object (``dispatcher.sinks.protocol``). It grows when one that
was written for the version before would not work any more, or might not."""

_log = logging.getLogger("bequeath.sinks")


class NoSuchSink(NamedTuple):
    """The reason why a kind of sink cannot be used, and what would help."""

    text: str
    hint: str = ""


def installed_kinds() -> Mapping[str, EntryPoint]:
    """Return all kinds by their words, folded; ours come first and keep their names."""
    return _installed(tuple(sys.path))


@lru_cache(maxsize=16)
def _installed(path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    by_word: dict[str, EntryPoint] = {}
    for each in entries_of(GROUP):
        before = by_word.setdefault(fold_word(each.name), each)
        if before is not each and is_ours(before):
            text = "%r brings a sink %r, which is a name of ours: it is left out"
            _log.warning(text, brought_by(each), each.name)
    return by_word


def sink_kind(word: str) -> FileSink[Any] | NoSuchSink:
    """Return the kind of that name; one of another package is a :class:`ForeignObject`.

    Imports the package that brings it.
    """
    there = installed_kinds()
    entry = there.get(fold_word(word))
    if entry is None:
        names = ", ".join(each.name for each in there.values()) or "none"
        hint = f"installed are {names}; others come with packages that bring them"
        return NoSuchSink(f"there is no sink {word!r}", hint)
    by = brought_by(entry)
    try:
        kind = entry.load()
        return kind if is_ours(entry) else _checked(kind, word, by)
    except Exception as error:  # noqa: BLE001 - somebody else's code, which harms itself only
        _log.warning("the sink %s cannot be loaded", word, exc_info=True)
        problem = f"{type(error).__name__}: {error}"
        return NoSuchSink(f"the sink {word!r} cannot be loaded: {problem}", f"{by!r} brings it")


def _checked(kind: Any, word: str, by: str) -> FileSink[Any] | NoSuchSink:
    version: Any = getattr(kind, "protocol", None)
    if version != PROTOCOL:
        return NoSuchSink(
            f"the sink {word!r} was written for version {version} of the protocol of sinks, and "
            f"this bequeath has version {PROTOCOL}",
            f"install versions of {by!r} and bequeath that fit together",
        )
    section = getattr(kind, "section", None)
    if not (isinstance(section, type) and issubclass(section, SinkConfig)):
        text = f"the sink {word!r} has no section: its 'section' must be a SinkConfig"
        return NoSuchSink(text, f"report it to the authors of {by!r}")
    section.model_rebuild()  # is put off; what is wrong with it is this sink's fault
    if isinstance(kind, type):  # the entry point may name the class as well
        kind = kind()
    if not isinstance(kind, FileSink):
        return NoSuchSink(f"the sink {word!r} is no SinkKind", "docs/sinks.md says what it must be")
    return cast("FileSink[Any]", ForeignObject(kind, f"the sink {word!r}", by, where="sinks"))


def kind_of_section(section: SinkConfig) -> FileSink[Any]:
    """Return the kind of a section that has been read.

    Raises:
        PermanentBackendError: it is not installed (any more), or is none.
    """
    kind = sink_kind(section.word)
    if isinstance(kind, NoSuchSink):
        raise PermanentBackendError(kind.text, hint=kind.hint, where="sinks")
    return kind


def unusable_sinks(values: Mapping[str, Any]) -> list[tuple[JsonPath, NoSuchSink]]:
    """Return where in a file, and why, kinds of sinks cannot be used.

    Args:
        values: the keys and values of the whole file.
    """
    written = {key: each for key, each in values.items() if fold_word(str(key)) == "sinks"}
    found: list[tuple[JsonPath, NoSuchSink]] = []
    for key, sinks in written.items():
        for index, each in enumerate(sinks if isinstance(sinks, list) else ()):
            if unusable := unusable_kind(each):
                found.append(((key, index, *unusable[0]), unusable[1]))
    return found


def unusable_kind(sink: Any) -> tuple[JsonPath, NoSuchSink] | None:
    """Say where in an entry of the file, and why, its kind cannot be used; None if it can, or if
    the entry is none at all."""
    if not isinstance(sink, Mapping):
        return None
    key = next((key for key in sink if isinstance(key, str) and fold_word(key) == "kind"), None)
    word = sink.get(key)
    if key is None or not isinstance(word, str) or not word:
        names = ", ".join(each.name for each in installed_kinds().values())
        return (key,) if key else (), NoSuchSink("a sink needs 'kind'", f"write one of: {names}")
    kind = sink_kind(word)
    return ((key,), kind) if isinstance(kind, NoSuchSink) else None


def _our_sections() -> list[type[SinkConfig]]:
    kinds = [sink_kind(word) for word, each in installed_kinds().items() if is_ours(each)]
    sections = [each.section for each in kinds if not isinstance(each, NoSuchSink)]
    return sorted(sections, key=lambda each: each.__name__)


def _read(value: Any, info: ValidationInfo) -> SinkConfig:
    """Read a section by the class that its kind brings."""
    if isinstance(value, SinkConfig):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping such as '{{kind: tensorboard}}', not {kind_of(value)}")
    unusable = unusable_kind(value)
    if unusable is not None:
        raise Misfit(unusable[1].text, at=unusable[0], hint=unusable[1].hint)
    kind = sink_kind(value["kind"])
    assert not isinstance(kind, NoSuchSink)
    try:
        section = kind.section.model_validate(value, context=info.context)
    except (ValueError, AssertionError):
        raise
    except Exception as error:  # a validator of another package
        raise ValueError(f"cannot be read: {type(error).__name__}: {error}") from error
    assert isinstance(section, SinkConfig)
    return section


class _SinkSections(ChosenSection):
    """Chooses the class of a section by the kind that it names."""

    def classes(self) -> Sequence[type[Section]]:
        """Return the classes of our own kinds: what is written down is the same everywhere."""
        return _our_sections()

    def class_for(self, value: Any) -> type[Section]:
        """Return the class for a value of the file."""
        word = value.get("kind") if isinstance(value, Mapping) else None
        kind = sink_kind(word) if isinstance(word, str) else NoSuchSink("")
        return SinkConfig if isinstance(kind, NoSuchSink) else kind.section

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """Describe a list of sinks; those of other packages as anything."""
        ours = [each.name for each in installed_kinds().values() if is_ours(each)]
        anything = {
            "type": "object",
            "properties": {"kind": {"type": "string", "not": {"enum": ours}}},
            "required": ["kind"],
        }
        # As items of something, so that they come as references to definitions.
        listed = [list_schema(each.__pydantic_core_schema__) for each in _our_sections()]
        sections = [handler(each)["items"] for each in listed]
        return {"type": "array", "items": {"oneOf": [*sections, anything]}, "maxItems": MOST_SINKS}


MOST_SINKS = 8
"""Sinks of one experiment: each reads the store by itself."""

Sinks = Annotated[
    tuple[Annotated[Any, PlainValidator(_read)], ...],
    Field(max_length=MOST_SINKS),
    _SinkSections(),
]
"""The sinks of an experiment; the file, and no annotation, decides which class each has."""


def read_sink(values: Mapping[str, Any], base_folder: Path) -> SinkConfig:
    """Read a sink that no experiment file names.

    Args:
        values: keys and values as in a file, ``kind`` among them.
        base_folder: the folder that relative paths count from.

    Raises:
        UserError: with all that is wrong.
    """
    wrong: list[ExperimentFileError] = []

    def refuse(path: JsonPath, text: str, hint: str) -> None:
        wrong.append(ExperimentFileError(text, hint=hint))

    kind = sink_kind(str(values.get("kind", "")))
    if isinstance(kind, NoSuchSink):
        raise UserError(kind.text, hint=kind.hint)
    settled = KeySettler(kind.section, refuse).settle(values)
    try:
        section: SinkConfig = kind.section.model_validate(
            settled, context={BASE_FOLDER: base_folder}
        )
        for each in kind.check(section, ()):
            refuse(each.path, f"'{written_path(each.path)}' {each.text}", each.hint)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            for path, text, hint in explain(detail):
                refuse(path, text, hint)
    if wrong:
        raise ExperimentFileErrors(wrong)
    return section


def check_titles(sinks: Sequence[SinkConfig]) -> None:
    """Raise ``Misfit`` unless all names differ."""
    titles: set[str] = set()
    for index, each in enumerate(sinks):
        if each.title in titles:
            raise Misfit(
                f"'sinks' has two called {each.title!r}",
                at=("sinks", index, "name" if each.name else "kind"),
                hint="give one of them a 'name' of its own",
            )
        titles.add(each.title)


def secret_keys(section: SinkConfig) -> dict[str, str]:
    """Return the references to secrets of a section, by its attributes."""
    values = {name: getattr(section, name) for name in section.secret_attributes}
    return {name: value for name, value in values.items() if value is not None}


def check_sinks(sinks: Sequence[SinkConfig]) -> Iterator[KeyProblem]:
    """Yield what sinks name and this machine lacks."""
    for index, section in enumerate(sinks):
        at: JsonPath = ("sinks", index)
        for name, reference in secret_keys(section).items():
            try:
                resolve_reference(reference)
            except ValueError as error:
                key = type(section).model_fields[name].alias or name
                yield KeyProblem((*at, key), str(error))
        try:
            yield from kind_of_section(section).check(section, at)
        except DispatcherError as error:
            yield KeyProblem(at, f"cannot be checked: {error.message}", error.hint)


def resolved_secrets(section: SinkConfig) -> dict[str, str]:
    """Return the secrets of a section by its attributes. Reads files and the environment.

    Raises:
        PermanentBackendError: a reference leads nowhere.
    """
    secrets = {}
    for name, reference in secret_keys(section).items():
        try:
            secrets[name] = resolve_reference(reference)
        except ValueError as error:
            key = type(section).model_fields[name].alias or name
            raise PermanentBackendError(
                f"'{key}' of the sink {section.title!r} {error}",
                hint="the head's environment is the one that counts",
                where="sinks",
            ) from error
    return secrets
