"""Reads results of other searches: of ours, of Optuna's, of NNI's and of Ray Tune's."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import quote

from dispatcher.errors import DispatcherError, ExperimentNotFound, UserError
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.folders.names import CONFIG_NAME
from dispatcher.queries.names import parts_of
from dispatcher.study.cells import read_cell
from dispatcher.study.storage_urls import file_of_sqlite, without_password
from tuners.objectives import directions_of, known_objectives

_KINDS = (
    "give a study or experiment (itself, folder, id or name), a file that was exported by bequeath "
    "or NNI (.csv, .json), a study or storage of Optuna's, or a results folder of Ray's"
)
_PREFIX, _METRICS = "parameters.", "metrics."
_ROW = ("parameter", "value")

#: Name, parameters, value.
_Result = tuple[str, dict[str, Any], Any]


class ForeignResults(NamedTuple):
    """Results of another search, and the name of that for people."""

    source: str
    results: list[_Result]
    cells: bool = False  # parameters were text


def read_foreign(
    source: Any, study_name: str | None, metric: str | None
) -> tuple[ForeignResults, Mapping[str, str]]:
    """Read results, and the direction of each objective of their search that is known.

    Args:
        source: as of :meth:`dispatcher.study.Study.warm_start`.
        study_name: of Optuna's.
        metric: of Ray Tune's.

    Raises:
        UserError: it cannot be read.
    """
    if hasattr(source, "trials") and hasattr(source, "directions"):
        return _of_optuna(source)
    folder = getattr(source, "folder", None)
    if isinstance(folder, Path):
        if hasattr(source, "flush"):
            source.flush()
        return _of_experiment(ExperimentHandle(folder))
    if not isinstance(source, str | Path):
        raise UserError(f"no results can be read from {source!r}", hint=_KINDS)
    if "://" in str(source):
        return _of_url(str(source), study_name)
    path = Path(source).expanduser()
    if path.is_file():
        return _of_file(path, study_name)
    if path.is_dir() and not (path / CONFIG_NAME).exists():
        return _of_ray(path, metric), {}
    try:
        return _of_experiment(ExperimentHandle.find(str(source)))
    except ExperimentNotFound as error:
        raise UserError(
            f"there is neither a file nor an experiment {str(source)!r}", hint=_KINDS
        ) from error


def _of_file(path: Path, study_name: str | None) -> tuple[ForeignResults, Mapping[str, str]]:
    try:
        with path.open("rb") as file:
            begins = file.read(16)
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if begins.startswith(b"SQLite format 3"):
        return _of_sqlite(path, study_name)
    if path.suffix == ".csv":
        return ForeignResults(path.name, _of_csv(path), cells=True), {}
    try:
        rows = json.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UserError("is no text", hint=_KINDS, where=str(path)) from error
    except (ValueError, RecursionError) as error:
        if b'"op_code"' in path.read_bytes()[:4096]:
            return _of_optuna(_load_journal(path, study_name))
        raise UserError(f"is not JSON: {error}", hint=_KINDS, where=str(path)) from error
    if isinstance(rows, Mapping) and "op_code" in rows:  # a journal of one line
        return _of_optuna(_load_journal(path, study_name))
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError("is no list of results", hint=_KINDS, where=str(path))
    return ForeignResults(path.name, [_row(n, row, path) for n, row in enumerate(rows)]), {}


def _row(number: int, row: dict[str, Any], path: Path) -> _Result:
    """A row of our export, or of NNI's."""
    if "trial" in row:
        return _exported(row)
    for key in _ROW:
        if key not in row:
            raise UserError(f"result {number + 1} has no {key!r}", hint=_KINDS, where=str(path))
    parameters, value = (
        read_cell(one) if isinstance(one, str) else one for one in map(row.get, _ROW)
    )
    if isinstance(parameters, dict) and isinstance(parameters.get("parameters"), dict):
        parameters = parameters["parameters"]  # with NNI's number and source around them
    if not isinstance(parameters, dict):
        raise UserError(
            f"the parameters of result {number + 1} are no mapping", hint=_KINDS, where=str(path)
        )
    return f"result {number + 1}", dict(parameters), value


def _exported(row: Mapping[str, Any]) -> _Result:
    parameters: dict[str, Any] = {}
    metrics: dict[str, Any] = {}
    for key, value in row.items():
        if key.startswith(_PREFIX):
            *above, name = parts_of(key.removeprefix(_PREFIX))
            at = parameters
            for each in above:
                at = at.setdefault(each, {}) if isinstance(at, dict) else {}
            if isinstance(at, dict):  # a name and one below it: the file has been changed
                at[name] = value
        elif key.startswith(_METRICS) and value is not None:
            metrics[key.removeprefix(_METRICS)] = value
    value = row.get("value")
    if metrics and value is not None:
        value = {"default": value, **metrics}
    return f"trial {row['trial']}", parameters, value


def _of_csv(path: Path) -> list[_Result]:
    results: list[_Result] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file, restkey=""):
                if "trial" not in row or "value" not in row:
                    raise UserError(
                        "has no columns 'trial' and 'value'", hint=_KINDS, where=str(path)
                    )
                if "" in row:
                    raise UserError(
                        f"trial {row['trial']} has more cells than there are columns",
                        where=str(path),
                    )
                cells = {
                    key: read_cell(text) for key, text in row.items() if text or key == "value"
                }
                results.append(_exported(cells))
    except (UnicodeDecodeError, csv.Error, OSError) as error:
        raise UserError(f"is no CSV that can be read: {error}", where=str(path)) from error
    return results


def _of_experiment(handle: ExperimentHandle) -> tuple[ForeignResults, Mapping[str, str]]:
    results: list[_Result] = [
        (f"trial {each.id}", dict(each.named_parameters), each.result)
        for each in handle.trials()
        if each.outcome is not None
    ]
    modes = directions_of(known_objectives(handle.config().objectives))
    return ForeignResults(handle.id, results), modes or {"default": handle.mode}


# -- Optuna -------------------------------------------------------------------------------------


def _optuna() -> Any:
    from tuners.errors import TunerArgumentError
    from tuners.optuna.library import optuna

    try:
        return optuna()
    except TunerArgumentError as error:
        raise UserError(error.message, hint=error.hint) from error


def _of_url(url: str, study_name: str | None) -> tuple[ForeignResults, Mapping[str, str]]:
    """Read a storage by its URL; a file of SQLite is read as one that is named by its path."""
    path = file_of_sqlite(url)
    if path is None:
        return _of_optuna(_load(url, study_name))
    if not path.is_file():
        raise UserError(
            f"there is no such file: {str(path)!r}",
            hint="three slashes stand before a path from this folder, four before one from the "
            "root: sqlite:////home/me/study.db",
            where=without_password(url, url),
        )
    return _of_sqlite(path, study_name)


def _load(url: str, study_name: str | None, where: str | None = None) -> Any:
    library = _optuna()
    with _read_by_optuna(where or url, url):
        return library.load_study(study_name=_named(url, study_name), storage=url)


def _load_journal(path: Path, study_name: str | None) -> Any:
    library = _optuna()
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    with _read_by_optuna(str(path)):
        storage = JournalStorage(JournalFileBackend(str(path)))
        return library.load_study(study_name=_named(storage, study_name), storage=storage)


def _of_sqlite(path: Path, study_name: str | None) -> tuple[ForeignResults, Mapping[str, str]]:
    """Read a copy of a file: Optuna would make its tables in one that has none."""
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    with TemporaryDirectory(prefix="bequeath-") as folder:
        try:
            with (
                closing(sqlite3.connect(uri, uri=True)) as file,
                closing(sqlite3.connect(f"{folder}/copy.db")) as copy,
            ):
                file.backup(copy)
                tables = {row[0] for row in copy.execute("SELECT name FROM sqlite_master")}
        except sqlite3.Error as error:
            raise UserError(f"cannot be read: {error}", where=str(path)) from error
        if not tables.issuperset(("studies", "trials")):
            raise UserError("is no storage of Optuna's", hint=_KINDS, where=str(path))
        return _of_optuna(_load(f"sqlite:///{folder}/copy.db", study_name, str(path)))


@contextmanager
def _read_by_optuna(where: str, url: str = "") -> Iterator[None]:
    """Say in a sentence why Optuna cannot read something.

    Args:
        where: what it reads, for people.
        url: of a storage, whose password is not shown.
    """
    try:
        yield
    except DispatcherError:
        raise
    except Exception as error:  # of Optuna, of SQLAlchemy, or of a driver
        text = str(error).partition("\n")[0] or type(error).__name__
        raise UserError(
            f"Optuna cannot read it: {without_password(text, url)}",
            where=without_password(where, url),
        ) from error


def _named(storage: Any, study_name: str | None) -> str:
    names = _optuna().get_all_study_names(storage)
    if study_name is None and len(names) == 1:
        return str(names[0])
    if study_name in names:
        assert study_name is not None
        return study_name
    if not names:
        raise UserError(
            "Optuna's storage holds no study",
            hint="see whether its name is right: a search is in the storage that it wrote to",
        )
    listed = ", ".join(map(repr, names))
    what = "has several studies" if study_name is None else f"has no study {study_name!r}"
    raise UserError(f"Optuna's storage {what}: {listed}", hint="name one of them: study_name=…")


def _of_optuna(study: Any) -> tuple[ForeignResults, Mapping[str, str]]:
    with _read_by_optuna("the study"):
        return _of_study(study)


def _of_study(study: Any) -> tuple[ForeignResults, Mapping[str, str]]:
    directions = study.directions
    if len(directions) > 1:
        raise UserError(
            f"Optuna's study {study.study_name!r} has {len(directions)} objectives",
            hint="take a study with one",
        )
    results: list[_Result] = []
    for each in study.get_trials(deepcopy=False):
        complete = each.state.name == "COMPLETE"
        results.append(
            (f"trial {each.number}", dict(each.params), each.value if complete else None)
        )
    mode = directions[0].name.lower()
    return ForeignResults(f"Optuna's {study.study_name!r}", results), {"default": mode}


# -- Ray Tune -----------------------------------------------------------------------------------


def _of_ray(folder: Path, metric: str | None) -> ForeignResults:
    """Read what Ray Tune writes: a folder a trial, with ``params.json`` and ``result.json``."""
    files = sorted(folder.glob("**/params.json"))
    if not files:
        raise UserError("holds no results", hint=_KINDS, where=str(folder))
    results: list[_Result] = []
    last: dict[str, Any] = {}
    for number, file in enumerate(files):
        reports = file.with_name("result.json")
        last = _last_object(reports)
        if metric is None:
            raise UserError(
                f"holds results of Ray Tune, with the metrics {_metrics_of(last)}",
                hint="name one of them: metric=…",
                where=str(folder),
            )
        parameters = _last_object(file)
        results.append((f"trial {number} ({file.parent.name[:40]})", parameters, last.get(metric)))
    if all(value is None for *_, value in results):
        raise UserError(
            f"no result there has the metric {metric!r}",
            hint=f"there are: {_metrics_of(last)}",
            where=str(folder),
        )
    return ForeignResults(folder.name, results)


def _last_object(path: Path) -> dict[str, Any]:
    """Read the last line that is whole: that of a program that was killed may be half a one."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    for part in (text, *reversed(text.splitlines())):
        try:
            found = json.loads(part)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    return {}


def _metrics_of(report: Mapping[str, Any]) -> str:
    about = ("pid", "time_", "timestamp", "iterations_", "training_iteration", "done", "warmup")
    names = [
        key
        for key, value in report.items()
        if isinstance(value, int | float) and not key.startswith(about)
    ]
    return ", ".join(names) or "none"
