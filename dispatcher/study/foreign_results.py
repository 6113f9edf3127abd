"""Reads results of other searches: of ours, of Optuna's, of NNI's and of Ray Tune's."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dispatcher.errors import ExperimentNotFound, UserError
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.folders.names import CONFIG_NAME

_KINDS = (
    "give a study or experiment (itself, folder, id or name), a file of 'bequeath experiment "
    "export' or of NNI (.csv, .json), a study or storage of Optuna's, or a results folder of Ray's"
)
_PREFIX, _METRICS = "parameters.", "metrics."

#: Name, parameters, value.
_Result = tuple[str, dict[str, Any], Any]


class ForeignResults(NamedTuple):
    """Results of another search, and the name of that for people."""

    source: str
    results: list[_Result]


def read_foreign(
    source: Any, study_name: str | None, metric: str | None
) -> tuple[ForeignResults, str | None]:
    """Read results, and the direction of their search if that is known.

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
        return _of_optuna(_load(str(source), study_name))
    path = Path(source).expanduser()
    if path.is_file():
        return _of_file(path, study_name)
    if path.is_dir() and not (path / CONFIG_NAME).exists():
        return _of_ray(path, metric), None
    try:
        return _of_experiment(ExperimentHandle.find(str(source)))
    except ExperimentNotFound as error:
        raise UserError(
            f"there is neither a file nor an experiment {str(source)!r}", hint=_KINDS
        ) from error


def _of_file(path: Path, study_name: str | None) -> tuple[ForeignResults, str | None]:
    with path.open("rb") as file:
        begins = file.read(16)
    if begins.startswith(b"SQLite format 3"):
        return _of_optuna(_load(f"sqlite:///{path}", study_name))
    if path.suffix == ".csv":
        return ForeignResults(path.name, list(_of_csv(path))), None
    try:
        rows = json.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UserError("is no text", hint=_KINDS, where=str(path)) from error
    except ValueError as error:
        if b'"op_code"' in path.read_bytes()[:4096]:
            return _of_optuna(_load_journal(path, study_name))
        raise UserError(f"is not JSON: {error}", hint=_KINDS, where=str(path)) from error
    if isinstance(rows, Mapping) and "op_code" in rows:  # a journal of one line
        return _of_optuna(_load_journal(path, study_name))
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError("is no list of results", hint=_KINDS, where=str(path))
    return ForeignResults(path.name, [_row(n, row, path) for n, row in enumerate(rows)]), None


def _row(number: int, row: dict[str, Any], path: Path) -> _Result:
    """A row of our export, or of NNI's."""
    if "trial" in row:
        return _exported(row)
    for key in ("parameter", "value"):
        if key not in row:
            raise UserError(f"result {number + 1} has no {key!r}", hint=_KINDS, where=str(path))
    parameters, value = row["parameter"], row["value"]
    if isinstance(parameters, str):
        parameters = json.loads(parameters)
    if isinstance(value, str):
        value = json.loads(value)
    if isinstance(parameters, dict) and isinstance(parameters.get("parameters"), dict):
        parameters = parameters["parameters"]  # with NNI's number and source around them
    return f"result {number + 1}", dict(parameters), value


def _exported(row: Mapping[str, Any]) -> _Result:
    parameters: dict[str, Any] = {}
    metrics: dict[str, Any] = {}
    for key, value in row.items():
        if key.startswith(_PREFIX):
            *above, name = key.removeprefix(_PREFIX).split(".")
            at = parameters
            for each in above:
                at = at.setdefault(each, {})
            at[name] = value
        elif key.startswith(_METRICS) and value is not None:
            metrics[key.removeprefix(_METRICS)] = value
    value = row.get("value")
    if metrics and value is not None:
        value = {"default": value, **metrics}
    return f"trial {row['trial']}", parameters, value


def _of_csv(path: Path) -> Iterator[_Result]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            if "trial" not in row or "value" not in row:
                raise UserError("has no columns 'trial' and 'value'", hint=_KINDS, where=str(path))
            cells = {
                key: _cell(text)
                for key, text in row.items()
                if text not in ("", None) or key == "value"
            }
            yield _exported(cells)


def _cell(text: str) -> Any:
    text = text.removeprefix("'")  # which keeps spreadsheets from taking it for a formula
    try:
        return json.loads(text)
    except ValueError:
        return text or None


def _of_experiment(handle: ExperimentHandle) -> tuple[ForeignResults, str | None]:
    results: list[_Result] = [
        (f"trial {each.id}", dict(each.named_parameters), each.result)
        for each in handle.trials()
        if each.outcome is not None
    ]
    return ForeignResults(handle.id, results), handle.mode


# -- Optuna -------------------------------------------------------------------------------------


def _optuna() -> Any:
    from tuners.errors import TunerArgumentError
    from tuners.optuna.library import optuna

    try:
        return optuna()
    except TunerArgumentError as error:
        raise UserError(error.message, hint=error.hint) from error


def _load(url: str, study_name: str | None) -> Any:
    library = _optuna()
    try:
        return library.load_study(study_name=_named(url, study_name), storage=url)
    except (KeyError, ValueError, RuntimeError) as error:
        raise UserError(f"Optuna cannot read it: {error}", where=url) from error


def _load_journal(path: Path, study_name: str | None) -> Any:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    storage = JournalStorage(JournalFileBackend(str(path)))
    try:
        return _optuna().load_study(study_name=_named(storage, study_name), storage=storage)
    except (KeyError, ValueError) as error:
        raise UserError(f"Optuna cannot read it: {error}", where=str(path)) from error


def _named(storage: Any, study_name: str | None) -> str:
    names = _optuna().get_all_study_names(storage)
    if study_name is None and len(names) == 1:
        return str(names[0])
    if study_name in names:
        assert study_name is not None
        return study_name
    listed = ", ".join(map(repr, names)) or "none"
    what = "has several studies" if study_name is None else f"has no study {study_name!r}"
    raise UserError(f"Optuna's storage {what}: {listed}", hint="name one of them: study_name=…")


def _of_optuna(study: Any) -> tuple[ForeignResults, str | None]:
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
    return ForeignResults(f"Optuna's {study.study_name!r}", results), directions[0].name.lower()


# -- Ray Tune -----------------------------------------------------------------------------------


def _of_ray(folder: Path, metric: str | None) -> ForeignResults:
    """Read what Ray Tune writes: a folder a trial, with ``params.json`` and ``result.json``."""
    files = sorted(folder.glob("**/params.json"))
    if not files:
        raise UserError("holds no results", hint=_KINDS, where=str(folder))
    results: list[_Result] = []
    for number, file in enumerate(files):
        reports = file.with_name("result.json")
        lines = reports.read_text(encoding="utf-8").splitlines() if reports.exists() else []
        last = json.loads(lines[-1]) if lines else {}
        if metric is None:
            raise UserError(
                f"holds results of Ray Tune, with the metrics {_metrics_of(last)}",
                hint="name one of them: metric=…",
                where=str(folder),
            )
        parameters = json.loads(file.read_text(encoding="utf-8"))
        results.append((f"trial {number} ({file.parent.name[:40]})", parameters, last.get(metric)))
    return ForeignResults(folder.name, results)


def _metrics_of(report: Mapping[str, Any]) -> str:
    about = ("pid", "time_", "timestamp", "iterations_", "training_iteration", "done", "warmup")
    names = [
        key
        for key, value in report.items()
        if isinstance(value, int | float) and not key.startswith(about)
    ]
    return ", ".join(names) or "none"
