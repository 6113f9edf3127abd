"""The read side: answers for the command line and notebooks.

Every function here only reads: an experiment's folder and its store, through a read-only
connection of its own, whether a head is writing meanwhile, has crashed, or is long gone.
Answers are frozen records with ``to_json``. Nothing is cached, nothing is decided, no
process is asked: what only a running head knows (waits, stacks) is the business of the
control channel.

Read ``reader.py`` first (an open experiment), then ``records.py`` (the answers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dispatcher.folders.status import ExperimentStatus
from dispatcher.late_names import fetched_late
from dispatcher.queries.experiments import (
    base_folder,
    experiment_folders,
    experiments,
    find_experiment,
    newest_experiment,
)
from dispatcher.queries.objectives import objective_of, objectives

if TYPE_CHECKING:
    from dispatcher.queries.bands import CurveBands, curve_bands
    from dispatcher.queries.boards import Board, BoardFilter, BoardGroup, leaderboard
    from dispatcher.queries.cells import cells_of, doubts, named_columns, unknown_parameters
    from dispatcher.queries.changed import (
        ChangedTrial,
        Changes,
        ReportedMetric,
        WeightsStanding,
        changes,
        cursor_now,
    )
    from dispatcher.queries.columns import Curve, FlatTrial, curve, flat_trials
    from dispatcher.queries.export import export_csv, export_rows
    from dispatcher.queries.fronts import front
    from dispatcher.queries.journal_rows import JournalEvent, JournalSlice, journal_after
    from dispatcher.queries.lineage_lines import lineage_text
    from dispatcher.queries.lineages import NO_PARENT, Lineage, LineageNode, inherits, lineage
    from dispatcher.queries.lives import History, Moment, TrialLife, TrialThen, history, moment_of
    from dispatcher.queries.notes import GivenAnnotations, annotations_of
    from dispatcher.queries.pace import rate_of, recent_ends, time_left
    from dispatcher.queries.reader import ExperimentReader
    from dispatcher.queries.records import (
        Attempt,
        MetricPoint,
        OptimizeMode,
        TrialDetail,
        TrialSummary,
        WrittenNote,
    )
    from dispatcher.queries.reported_values import (
        METRIC_COLUMNS,
        metric_rows,
        metrics_csv,
        metrics_json,
    )
    from dispatcher.queries.reports import NewestReport, metrics_between, newest_reports
    from dispatcher.queries.running_best import Progress, ProgressPoint, progress
    from dispatcher.queries.summary import (
        ExperimentListing,
        ExperimentSummary,
        created_at,
        experiment_summary,
    )
    from dispatcher.queries.trials import (
        TrialFilter,
        TrialNotFound,
        TrialSort,
        attempts_of,
        best,
        demand_trial,
        list_trials,
        metrics,
        sort_key,
        trial,
    )
    from dispatcher.queries.where import WhereError, parse_condition, parse_names

#: Where each name is. It is fetched at its first use: who needs one does not wait for all.
_HOMES = {
    "CurveBands": "bands",
    "curve_bands": "bands",
    "Board": "boards",
    "BoardFilter": "boards",
    "BoardGroup": "boards",
    "leaderboard": "boards",
    "cells_of": "cells",
    "doubts": "cells",
    "named_columns": "cells",
    "unknown_parameters": "cells",
    "ChangedTrial": "changed",
    "Changes": "changed",
    "ReportedMetric": "changed",
    "WeightsStanding": "changed",
    "changes": "changed",
    "cursor_now": "changed",
    "Curve": "columns",
    "FlatTrial": "columns",
    "curve": "columns",
    "flat_trials": "columns",
    "export_csv": "export",
    "export_rows": "export",
    "front": "fronts",
    "JournalEvent": "journal_rows",
    "JournalSlice": "journal_rows",
    "journal_after": "journal_rows",
    "lineage_text": "lineage_lines",
    "Lineage": "lineages",
    "LineageNode": "lineages",
    "NO_PARENT": "lineages",
    "inherits": "lineages",
    "lineage": "lineages",
    "History": "lives",
    "Moment": "lives",
    "TrialLife": "lives",
    "TrialThen": "lives",
    "history": "lives",
    "moment_of": "lives",
    "GivenAnnotations": "notes",
    "annotations_of": "notes",
    "rate_of": "pace",
    "recent_ends": "pace",
    "time_left": "pace",
    "ExperimentReader": "reader",
    "Attempt": "records",
    "MetricPoint": "records",
    "OptimizeMode": "records",
    "TrialDetail": "records",
    "TrialSummary": "records",
    "WrittenNote": "records",
    "METRIC_COLUMNS": "reported_values",
    "metric_rows": "reported_values",
    "metrics_csv": "reported_values",
    "metrics_json": "reported_values",
    "NewestReport": "reports",
    "metrics_between": "reports",
    "newest_reports": "reports",
    "Progress": "running_best",
    "ProgressPoint": "running_best",
    "progress": "running_best",
    "ExperimentListing": "summary",
    "ExperimentSummary": "summary",
    "created_at": "summary",
    "experiment_summary": "summary",
    "TrialFilter": "trials",
    "TrialNotFound": "trials",
    "TrialSort": "trials",
    "attempts_of": "trials",
    "best": "trials",
    "demand_trial": "trials",
    "list_trials": "trials",
    "metrics": "trials",
    "sort_key": "trials",
    "trial": "trials",
    "WhereError": "where",
    "parse_condition": "where",
    "parse_names": "where",
}

__all__ = [
    "METRIC_COLUMNS",
    "NO_PARENT",
    "Attempt",
    "Board",
    "BoardFilter",
    "BoardGroup",
    "ChangedTrial",
    "Changes",
    "Curve",
    "CurveBands",
    "ExperimentListing",
    "ExperimentReader",
    "ExperimentStatus",
    "ExperimentSummary",
    "FlatTrial",
    "GivenAnnotations",
    "History",
    "JournalEvent",
    "JournalSlice",
    "Lineage",
    "LineageNode",
    "MetricPoint",
    "Moment",
    "NewestReport",
    "OptimizeMode",
    "Progress",
    "ProgressPoint",
    "ReportedMetric",
    "TrialDetail",
    "TrialFilter",
    "TrialLife",
    "TrialNotFound",
    "TrialSort",
    "TrialSummary",
    "TrialThen",
    "WeightsStanding",
    "WhereError",
    "WrittenNote",
    "annotations_of",
    "attempts_of",
    "base_folder",
    "best",
    "cells_of",
    "changes",
    "created_at",
    "cursor_now",
    "curve",
    "curve_bands",
    "demand_trial",
    "doubts",
    "experiment_folders",
    "experiment_summary",
    "experiments",
    "export_csv",
    "export_rows",
    "find_experiment",
    "flat_trials",
    "front",
    "history",
    "inherits",
    "journal_after",
    "leaderboard",
    "lineage",
    "lineage_text",
    "list_trials",
    "metric_rows",
    "metrics",
    "metrics_between",
    "metrics_csv",
    "metrics_json",
    "moment_of",
    "named_columns",
    "newest_experiment",
    "newest_reports",
    "objective_of",
    "objectives",
    "parse_condition",
    "parse_names",
    "progress",
    "rate_of",
    "recent_ends",
    "sort_key",
    "time_left",
    "trial",
    "unknown_parameters",
]

__getattr__ = fetched_late(__name__, _HOMES)
