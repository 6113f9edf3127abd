"""From the text of an experiment file to a checked configuration, or to all its errors.

The order: YAML → spelling of keys → types and what must fit together → the disk. Each
stage goes on with what the one before could read, so that one run names all that is wrong.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dispatcher.errors import DispatcherError, ExperimentFileError
from dispatcher.experiment.checks import check_on_disk
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.dialects import Dialect, dialect_named, first_dialect, first_to_know
from dispatcher.experiment.draft import Draft
from dispatcher.experiment.fields import BASE_FOLDER
from dispatcher.experiment.file_places import FilePlaces
from dispatcher.experiment.keys import KeySettler
from dispatcher.experiment.plugged import unusable_platforms
from dispatcher.experiment.problems import ExperimentFileErrors
from dispatcher.experiment.sentences import explain, half_a_character
from dispatcher.experiment.sink_kinds import unusable_sinks
from dispatcher.experiment.source import MOST_BYTES, Source
from tuners.plain_json import JsonPath, kind_of, written_path

# What takes the place of a wrong value while the rest is looked at. Never leaves this file.
_STAND_INS: dict[str, Any] = {
    "tuner": {"className": "stand:In"},
    "trialCommand": "true",
    "trialConcurrency": 1,
    "searchSpace": {"stand_in": {"_type": "choice", "_value": [0]}},
}

#: Keys that are judged by another one: nothing is said of them where that is wrong.
_JUDGED_BY = {"trialNodes": "trainingService"}


def load_experiment(
    path: str | Path,
    on_remark: Callable[[str], None] | None = None,
    *,
    elsewhere: bool = False,
) -> ExperimentConfig:
    """Read and check an experiment file, ours or one in a dialect.

    Args:
        path: a YAML file; relative paths in it count from its folder.
        on_remark: called with each remark on how a file was translated.
        elsewhere: it is for another machine: what has to be on this one's disk is not looked for.

    Raises:
        ExperimentFileErrors: with everything that is wrong, each with ``file:line:column``.
    """
    loading = _loading_of(path)
    config = loading.finish(elsewhere=elsewhere)
    for remark in loading.draft.remarks if loading.draft is not None else ():
        if on_remark is not None:
            on_remark(remark)
    return config


def load_with_places(path: str | Path) -> tuple[ExperimentConfig, FilePlaces]:
    """Do as :func:`load_experiment` does, and return the places of the file's keys, too."""
    loading = _loading_of(path)
    return loading.finish(), FilePlaces(loading.where, loading.settler.written.keys())


def converted(path: str | Path) -> str | None:
    """Return a file in a dialect under our keys, as text; None if it has them already.

    Raises:
        ExperimentFileErrors: as :func:`load_experiment`.
    """
    loading = _loading_of(path)
    config = loading.finish()
    if loading.dialect is None or loading.draft is None:
        return None
    changed: dict[str, Any] = {"experimentName": config.experiment_name}
    if config.search_space_file is not None and config.search_space != load_search_space(
        config.search_space_file
    ):
        changed |= {"searchSpaceFile": None, "searchSpace": config.search_space}
    return loading.dialect.native_text(loading.draft, os.path.basename(path), changed)


def parse_experiment(
    text: str, origin: str, base_folder: Path, *, default_name: str = "experiment"
) -> ExperimentConfig:
    """Read and check the text of an experiment file.

    Args:
        text: YAML.
        origin: what to call the file in errors.
        base_folder: the folder that relative paths count from.
        default_name: the experiment's name if the text gives none.

    Raises:
        ExperimentFileErrors: with everything that is wrong.
    """
    from dispatcher.experiment.yaml_text import read_source

    return _Loading(read_source(text, origin), base_folder, default_name).finish()


def build_experiment(
    values: Mapping[str, Any],
    *,
    origin: str = "experiment",
    base_folder: Path | None = None,
    our_keys: bool = False,
) -> ExperimentConfig:
    """Check an experiment given as a mapping from Python, with the same errors as a file's.

    Args:
        values: the keys of an experiment file and their values.
        origin: what to call the mapping in errors.
        base_folder: the folder that relative paths count from; None for the current one.
        our_keys: no dialect is asked whether the keys are its own.

    Raises:
        ExperimentFileErrors: with everything that is wrong, each with the path of its key.
    """
    source = Source(origin, dict(values))
    loading = _Loading(source, base_folder or Path.cwd(), "experiment", our_keys=our_keys)
    return loading.finish()


def load_search_space(path: str | Path) -> dict[str, Any]:
    """Read a search space from a YAML or JSON file; whether it holds is not checked here.

    Raises:
        ExperimentFileErrors: not to be read, or not a mapping.
    """
    return _mapping(_read_file(Path(os.path.expanduser(path)), str(path)), "a search space")


class _Loading:
    """One run over one experiment; collects errors and never stops at the first."""

    def __init__(
        self,
        source: Source,
        base_folder: Path,
        default_name: str,
        file: str = "",
        *,
        our_keys: bool = False,
    ) -> None:
        self.source = source
        self.base_folder = base_folder
        self.default_name = default_name
        self.file = file
        self.our_keys = our_keys
        self.dialect: Dialect | None = None  # of the file, which it translates to the draft
        self.draft: Draft | None = None
        self.errors: list[tuple[tuple[int, int, int], ExperimentFileError]] = []
        self.settler = KeySettler(ExperimentConfig, self._refuse_key)
        self.unseen: set[str] = set()  # keys that were taken out

    def finish(self, *, elsewhere: bool = False) -> ExperimentConfig:
        values = self._translated(_mapping(self.source, "an experiment file"))
        self._set_aside_foreign(values)
        settled = self.settler.settle(values)
        self._take_search_space(settled)
        self._take_annotations(settled)
        settled.setdefault("experimentName", self.default_name)
        config, wrong = self._validate(settled)
        if config is not None:
            self._look_for_dialect(config)
            for finding in () if elsewhere else check_on_disk(config):
                if wrong.isdisjoint((finding.path[0], _JUDGED_BY.get(str(finding.path[0])))):
                    text = f"'{written_path(finding.path)}' {finding.text}"
                    self._refuse(finding.path, text, finding.hint)
        if self.errors or config is None:
            self.errors.sort(key=lambda item: item[0])
            raise ExperimentFileErrors([error for _, error in self.errors])
        return config

    def where(self, path: JsonPath) -> str:
        """Return ``file:line:column`` of a value, given by its canonical path."""
        return self.source.where(self._written(path))

    def _translated(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values under our keys, translated if the file is in a dialect."""
        folder = self.base_folder if self.file else None
        written_in = None
        if not self.our_keys:
            written_in = first_to_know(lambda dialect: dialect.version_of(values, folder))
        if written_in is None:
            if self.source.doubles:
                raise ExperimentFileErrors(self.source.doubles)
            return values
        dialect, version = written_in
        draft = dialect.translate(values, version, self.file or self.source.origin)
        for each in draft.refusals:
            where = self.source.where(each.source, key=each.is_key)
            self._record(each.source, where, each.text, each.hint, key=each.is_key)
        self.dialect, self.draft = dialect, draft
        self._say_doubles(self.source)
        broken = [top for top in draft.broken if top in _STAND_INS]
        return {**draft.values, **{top: _STAND_INS[top] for top in broken}}

    def _say_doubles(self, source: Source) -> None:
        """Remark that of several equal keys the last one counts, as in the dialect's own reader."""
        assert self.dialect is not None
        assert self.draft is not None
        for each in source.doubles:
            where = each.where.removeprefix(f"{self.source.origin}:")
            place = f"line {where.partition(':')[0]}" if where != each.where else each.where
            framework = self.dialect.title
            self.draft.remark(f"{place}: {each.message}; this one counts, as with {framework}")

    def _refuse_key(self, path: JsonPath, message: str, hint: str) -> None:
        """Refuse a key, given by its path as the file spells it."""
        path = self._in_the_file(path)
        self._record(path, self.source.where(path, key=True), message, hint, key=True)

    def _refuse(self, path: JsonPath, message: str, hint: str) -> None:
        """Refuse a value, given by its canonical path."""
        written = self._written(path)
        if self.draft is not None:
            ours, theirs = written_path(path), written_path(written)
            message = message.replace(f"'{ours}'", f"'{theirs}'", 1) if theirs else message
        self._record(written, self.source.where(written), message, hint)

    def _record(
        self, path: JsonPath, where: str, message: str, hint: str, *, key: bool = False
    ) -> None:
        line, column = self.source.place(path, key=key) or (0, 0)
        error = ExperimentFileError(message, hint=hint, where=where)
        self.errors.append(((line, column, len(self.errors)), error))

    def _written(self, path: JsonPath) -> JsonPath:
        """Return the path in the file's own spelling, as far as the file goes."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.settler.written:
                return self._in_the_file(self.settler.written[path[:end]] + path[end:])
        return self._in_the_file(path)

    def _in_the_file(self, path: JsonPath) -> JsonPath:
        """Return the path in the user's own file for a path under our keys."""
        if self.draft is None or not path or path[:1] in self.source.grafts:
            return path
        return self.draft.source_of(path)

    def _set_aside_foreign(self, values: dict[str, Any]) -> None:
        """Take out platforms and sinks that are not installed: their keys cannot be checked."""
        for name, unusable in (("trainingService", unusable_platforms), ("sinks", unusable_sinks)):
            for at, problem in unusable(values):
                named = self._in_the_file(at)
                self._record(named, self.source.where(named), *problem)
                values.pop(str(at[0]), None)
                self.unseen.add(name)

    def _take_search_space(self, settled: dict[str, Any]) -> None:
        """Read ``searchSpaceFile`` into ``searchSpace``, its places included."""
        name = settled.get("searchSpaceFile")
        if not isinstance(name, str | os.PathLike):
            return
        if "searchSpace" in settled:
            text = "'searchSpace' and 'searchSpaceFile' exclude each other"
            self._refuse(("searchSpaceFile",), text, "keep one of the two")
            return
        file = self.base_folder / os.path.expanduser(name)
        beside = os.path.join(os.path.dirname(self.source.origin), name)
        try:
            space = _read_file(file, os.path.normpath(beside), lax=self.draft is not None)
            if self.draft is not None:
                self._say_doubles(space)
            settled["searchSpace"] = _mapping(space, "a search space")
        except ExperimentFileErrors as errors:
            at = self._written(("searchSpaceFile",))
            for error in errors.errors:
                if not os.path.isfile(file):
                    where = self.source.where(at)
                    key = written_path(at) if self.draft is not None else "searchSpaceFile"
                    self._record(at, where, f"'{key}' {error.message}", error.hint)
                else:
                    self._record(at, error.where, error.message, error.hint)
            settled["searchSpace"] = _STAND_INS["searchSpace"]
            return
        self.source.grafts[("searchSpace",)] = space
        if self.dialect is not None:
            settled["searchSpace"] = self.dialect.current_space(settled["searchSpace"])

    def _take_annotations(self, settled: dict[str, Any]) -> None:
        """Read the search space from annotated code, if the file sets ``useAnnotation``."""
        if settled.get("useAnnotation") not in (True, "true", "yes", "on"):
            return
        if "searchSpace" in settled:
            text = "'useAnnotation' takes the search space from the code, and the file has one"
            self._refuse(("useAnnotation",), text, "keep one of the two")
            return
        settled["searchSpace"] = _STAND_INS["searchSpace"]
        folder = self._folder_of(settled, "trialCodeDirectory", ".")
        if folder is None or not folder.is_dir():
            return  # named by another check
        kept = self._folder_of(settled, "experimentWorkingDirectory", "")
        tuner = settled.get("tuner")
        ours = isinstance(tuner, Mapping) and tuner.get("name") is not None
        at = self._written(("useAnnotation",))
        try:
            dialect = self.dialect
            if dialect is None or not dialect.tuner_adapter:
                dialect = first_dialect("annotated code")
            space = dialect.annotated_space(folder, () if kept is None else (kept,), flat=ours)
        except DispatcherError as error:
            self._record(at, error.where or str(folder), error.message, error.hint)
            return
        except OSError as error:
            text = f"cannot be read: {error.strerror or error}"
            self._record(at, str(error.filename or folder), text, "")
            return
        if not space:
            text = f"'useAnnotation' is on, and no annotation of a parameter is in {folder}"
            self._refuse(("useAnnotation",), text, dialect.annotation_hint)
            return
        settled["searchSpace"] = dialect.current_space(space)

    def _look_for_dialect(self, config: ExperimentConfig) -> None:
        """Refuse code that is written for a framework which nothing installed serves."""
        if config.compatibility == "none":
            return
        try:
            dialect_named(config.compatibility)
        except DispatcherError as error:
            self._refuse(("compatibility",), error.message, error.hint)

    def _folder_of(self, settled: dict[str, Any], key: str, usual: str) -> Path | None:
        name = settled.get(key, usual)
        if not isinstance(name, str | os.PathLike) or not str(name):
            return None
        return self.base_folder / os.path.expanduser(name)

    def _validate(self, values: dict[str, Any]) -> tuple[ExperimentConfig | None, set[str]]:
        """Validate; where a value is wrong, go on with a stand-in to see what else is."""
        wrong = self.unseen | (set() if self.draft is None else set(self.draft.broken))
        while True:
            try:
                context = {BASE_FOLDER: self.base_folder}
                return ExperimentConfig.model_validate(values, context=context), wrong
            except ValidationError as error:
                fresh: set[str] = set()
                for detail in error.errors(include_url=False):
                    for path, text, hint in explain(detail):
                        top = str(path[0]) if path else ""
                        if top not in wrong:
                            self._refuse(path, text, hint)
                            fresh.add(top)
            except UnicodeEncodeError as error:
                self._refuse((), *half_a_character(error))
                return None, wrong
            wrong |= fresh
            if not fresh or "" in fresh:
                return None, wrong
            for top in fresh:
                values.pop(top, None)
                if top in _STAND_INS and not (
                    top == "trialCommand" and values.get("trialFunction") is not None
                ):
                    values[top] = _STAND_INS[top]


def _loading_of(path: str | Path) -> _Loading:
    file = Path(os.path.expanduser(path))
    source = _read_file(file, str(path), lax=True)
    return _Loading(source, file.absolute().parent, file.stem, str(file.absolute()))


def _mapping(source: Source, what: str) -> dict[str, Any]:
    if isinstance(source.value, dict):
        return dict(source.value)
    text = "is empty" if source.value is None else f"must be a mapping, not {kind_of(source.value)}"
    where = source.where(()) if source.values else f"{source.origin}:1:1"
    error = ExperimentFileError(f"{what} {text}", hint="write 'key: value' lines", where=where)
    raise ExperimentFileErrors([error])


def _read_file(file: Path, origin: str, *, lax: bool = False) -> Source:
    """Read a file; with ``lax`` for dialects."""
    from dispatcher.experiment.yaml_text import read_source_of

    return read_source_of(_read_text(file, origin), file, origin, lax=lax)


def _read_text(file: Path, origin: str) -> str:
    try:
        if os.path.isfile(file) and file.stat().st_size > MOST_BYTES:
            raise _unreadable(origin, f"is larger than {MOST_BYTES >> 20} MiB")
        return file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        near = _near(file)
        raise _unreadable(origin, f"does not exist: {file}{near}") from None
    except IsADirectoryError:
        raise _unreadable(origin, f"is a folder: {file}") from None
    except UnicodeDecodeError as error:
        raise _unreadable(origin, f"is not UTF-8 text, see byte {error.start}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _unreadable(origin, f"cannot be read: {reason}") from error


def _near(file: Path) -> str:
    """Name a file that may be meant: the same stem, or the other ending of YAML."""
    for ending in (".yml", ".yaml", ".json"):
        if os.path.isfile(file.with_suffix(ending)):
            return f"; did you mean {file.with_suffix(ending).name!r}?"
    beside = {f.stem: f.name for f in file.parent.glob("*.y*ml")} if file.parent.is_dir() else {}
    near = difflib.get_close_matches(file.stem, beside, 1, cutoff=0.75)
    return f"; did you mean {beside[near[0]]!r}?" if near else ""


def _unreadable(origin: str, message: str) -> ExperimentFileErrors:
    return ExperimentFileErrors([ExperimentFileError(message, where=origin)])
