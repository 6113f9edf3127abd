"""The read side: answers for the command line and notebooks.

Every function here only reads: an experiment's folder and its store, through a read-only
connection of its own, whether a head is writing meanwhile, has crashed, or is long gone.
Answers are frozen records with ``to_json``. Nothing is cached, nothing is decided, no
process is asked: what only a running head knows (waits, stacks) is the business of the
control channel.

Read ``reader.py`` first (an open experiment), then ``records.py`` (the answers).
"""

from __future__ import annotations

from dispatcher.folders.status import ExperimentStatus
from dispatcher.queries.bands import CurveBands, curve_bands
from dispatcher.queries.cells import cells_of, named_columns, unknown_parameters
from dispatcher.queries.changes import (
    ChangedTrial,
    Changes,
    ReportedMetric,
    WeightsStanding,
    changes,
    cursor_now,
)
from dispatcher.queries.columns import Curve, FlatTrial, curve, flat_trials
from dispatcher.queries.experiments import (
    base_folder,
    experiments,
    find_experiment,
    newest_experiment,
)
from dispatcher.queries.export import export_csv, export_rows
from dispatcher.queries.front import front
from dispatcher.queries.history import History, Moment, TrialLife, TrialThen, history, moment_of
from dispatcher.queries.journal_rows import JournalEvent, JournalSlice, journal_after
from dispatcher.queries.leaderboard import Board, BoardFilter, BoardGroup, leaderboard
from dispatcher.queries.lineage import NO_PARENT, Lineage, LineageNode, inherits, lineage
from dispatcher.queries.lineage_text import lineage_text
from dispatcher.queries.notes import GivenAnnotations, annotations_of
from dispatcher.queries.objectives import objective_of, objectives
from dispatcher.queries.pace import rate_of, recent_ends, time_left
from dispatcher.queries.progress import Progress, ProgressPoint, progress
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
from dispatcher.queries.summary import ExperimentListing, ExperimentSummary, experiment_summary
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
    "cursor_now",
    "curve",
    "curve_bands",
    "demand_trial",
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
