"""One experiment that is on disk, to be looked at: all that needs no head, and changes nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from dispatcher import queries
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.folders.status import is_led

if TYPE_CHECKING:
    from dispatcher.control.snapshot import HeadSnapshot
    from dispatcher.experiment import ExperimentConfig
    from dispatcher.experiments.attempts import LocatedTrial
    from dispatcher.experiments.standing import Standing
    from dispatcher.experiments.why import Why
    from dispatcher.plots.shapes import Plot
    from dispatcher.queries import (
        ExperimentReader,
        ExperimentSummary,
        Lineage,
        TrialDetail,
        TrialSummary,
    )
    from dispatcher.queries.names import Sql
    from dispatcher.queries.objectives import Objectives


class Leaders(NamedTuple):
    """The best trials; of several objectives, which are then named, the front."""

    trials: list[TrialSummary]
    objectives: Objectives


@dataclass(frozen=True, slots=True)
class ExperimentView:
    """A look at one experiment, running or not, ours or by its path somebody else's.

    Any thread, one call at a time; cheap to make. Each call reads what is there now.
    """

    folder: Path

    @property
    def id(self) -> str:
        """The experiment's id, which is its folder's name."""
        return self.folder.name

    @property
    def name(self) -> str:
        """The experiment's name, from its store."""
        with self.reading() as reader:
            return reader.name

    @property
    def mode(self) -> str:
        """Whether the best value is the highest or the lowest: ``maximize`` or ``minimize``."""
        with self.reading() as reader:
            return reader.mode.value

    @property
    def inherits(self) -> bool:
        """Whether any of its trials has a parent."""
        with self.reading() as reader:
            return queries.inherits(reader)

    @property
    def place(self) -> ExperimentFolder:
        """The names within its folder."""
        return ExperimentFolder(self.folder)

    @property
    def running(self) -> bool:
        """Whether a head leads it now."""
        return is_led(self.folder)

    def config(self) -> ExperimentConfig:
        """Read its settings, as they are now."""
        from dispatcher.experiment.snapshot import from_json

        return from_json(self.place.read_config(), str(self.place.config))

    def settings(self) -> dict[str, Any]:
        """Read its settings for a person's eyes: secrets are masked."""
        from dispatcher.experiment.snapshot import read_shown

        return read_shown(self.place.read_config(), str(self.place.config))

    def reading(self) -> contextlib.AbstractContextManager[ExperimentReader]:
        """Open its store for reading; close it at the end."""
        return queries.ExperimentReader.open(self.folder)

    def status(self) -> ExperimentSummary:
        """How it stands: status, counts, the best, rate, time left."""
        with self.reading() as reader:
            return queries.experiment_summary(reader)

    def standing(self) -> Standing:
        """The whole of it: :meth:`status`, and its head's snapshot if one answers."""
        from dispatcher.experiments.standing import standing

        return standing(self.folder)

    def snapshot(self) -> HeadSnapshot | None:
        """Ask its head how it stands; None if none answers, or it is somebody else's."""
        from dispatcher.experiments.why import asked

        return asked(self.folder)

    def why(self) -> Why:
        """The reason why nothing, or not more, is running."""
        from dispatcher.experiments.why import explain

        return explain(self.folder)

    def trials(
        self,
        wanted: queries.TrialFilter | None = None,
        *,
        sort: queries.TrialSort | Sql = queries.TrialSort.ID,
        reverse: bool = False,
        limit: int | None = None,
    ) -> list[TrialSummary]:
        """The trials that a filter lets through, or all.

        Args:
            wanted: the filter.
            sort: their order; by value, the best come first.
            reverse: the other way round.
            limit: at most so many; None: all.
        """
        with self.reading() as reader:
            down = sort is queries.TrialSort.VALUE and reader.mode is queries.OptimizeMode.MAXIMIZE
            return queries.list_trials(
                reader,
                wanted or queries.TrialFilter(),
                sort=sort,
                descending=down is not reverse,
                limit=limit,
            )

    def trial(self, number: int) -> TrialDetail:
        """All about one trial. Raises ``TrialNotFound``."""
        with self.reading() as reader:
            return queries.trial(reader, number)

    def attempts(self, trial: int) -> LocatedTrial:
        """One trial with its attempts, for their files and outputs; close it at the end.

        Raises ``TrialNotFound``.
        """
        from dispatcher.experiments.attempts import LocatedTrial

        return LocatedTrial(self, trial)

    def leaders(self, limit: int | None, few: int = 5, condition: str = "") -> Leaders:
        """The best trials, the best first; of several objectives the front.

        Args:
            limit: how many at most; None: the whole front.
            few: in place of None where there is one objective.
            condition: only among trials for which it holds, as people type it.

        Raises:
            WhereError: the condition cannot be read.
        """
        with self.reading() as reader:
            objectives = queries.objectives(reader)
            if objectives:
                return Leaders(queries.front(reader, condition)[:limit], objectives)
            return Leaders(queries.best(reader, limit or few, condition=condition), objectives)

    def rows(self) -> list[dict[str, Any]]:
        """One flat dict a trial: parameters and metrics in columns of their own."""
        with self.reading() as reader:
            return queries.export_rows(reader)

    def csv(self) -> str:
        """The text of :meth:`rows` as CSV."""
        with self.reading() as reader:
            return queries.export_csv(reader)

    def metric_rows(self) -> list[dict[str, Any]]:
        """One flat dict for each value that a trial reported."""
        with self.reading() as reader, reader.moment():
            return list(queries.metric_rows(reader))

    def metrics_text(self, form: Literal["csv", "json"]) -> str:
        """The text of :meth:`metric_rows`, as CSV or as one JSON list with a line a row."""
        write = queries.metrics_csv if form == "csv" else queries.metrics_json
        with self.reading() as reader:
            return write(reader)

    def parquet(self, *, metrics: bool = False) -> bytes:
        """The rows of :meth:`rows`, or of :meth:`metric_rows`, as a file of Apache Parquet.

        Args:
            metrics: a row for each reported value, in place of one for each trial.

        Raises:
            UserError: pyarrow is missing.
        """
        from dispatcher.queries.export import COLUMNS
        from dispatcher.queries.parquet import demand_pyarrow, parquet_of

        demand_pyarrow()
        with self.reading() as reader, reader.moment():
            if metrics:
                return parquet_of(queries.metric_rows(reader), queries.METRIC_COLUMNS)
            return parquet_of(queries.export_rows(reader), COLUMNS)

    def lineage(self, root: int | None = None) -> Lineage:
        """The inheritance tree, of a trial and its descendants only if ``root`` names one."""
        with self.reading() as reader:
            return queries.lineage(reader, root=root)

    def plot_data(self, kind: str, choice: Mapping[str, Any]) -> Plot:
        """The numbers of a plot, as :mod:`dispatcher.plots.shapes` has them.

        Args:
            kind: of :data:`dispatcher.plots.kinds.KINDS`.
            choice: what of it, by the names of the operation's arguments.

        Raises:
            UserError: there is no such kind, parameter or number, or a library is missing.
        """
        from dispatcher.plots.kinds import data_of

        with self.reading() as reader:
            return data_of(reader, kind, choice)

    def draw(self, kind: str, target: Path, **choice: Any) -> None:
        """Draw it into a PNG file.

        Args:
            kind: ``progress``, ``lineage``, or one of :data:`dispatcher.plots.kinds.KINDS`.
            target: the file.
            **choice: what of it; of the lineage ``root``: this trial and its descendants only.

        Raises:
            UserError: there is no such kind, parameter or number, a library is missing, or
                the file cannot be written.
        """
        from dispatcher.plots.pictures import draw

        with self.reading() as reader:
            draw(reader, kind, target, choice)
