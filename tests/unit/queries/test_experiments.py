"""Finding experiments, and how they stand."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dispatcher.errors import ExperimentNotFound, UserError
from dispatcher.queries import (
    ExperimentReader,
    ExperimentStatus,
    base_folder,
    experiment_summary,
    experiments,
    export_csv,
    export_rows,
    find_experiment,
    newest_experiment,
    progress,
)
from dispatcher.queries.export import CsvText, cell_text
from dispatcher.store import Leadership, SqliteJournal
from tests.unit.queries.evolution import evolve, make_folder


@pytest.fixture
def base(tmp_path: Path) -> Path:
    for name, id, trials in (("digits", "digits-aaa111", 6), ("digits", "digits-bbb222", 3),
                             ("mnist", "mnist-ccc333", 1)):  # fmt: skip
        evolve(make_folder(tmp_path, name, id, maxTrialNumber=10), trials)
    (tmp_path / "something else").mkdir()
    (tmp_path / "a file").touch()
    return tmp_path


def test_all_are_listed(base: Path) -> None:
    listed = {one.id: one for one in experiments(base)}
    assert set(listed) == {"digits-aaa111", "digits-bbb222", "mnist-ccc333"}
    assert listed["digits-aaa111"].trials == 6
    assert listed["mnist-ccc333"].name == "mnist"
    assert listed["mnist-ccc333"].best_trial == 0


def test_a_damaged_one_does_not_hide_the_others(base: Path) -> None:
    (base / "mnist-ccc333" / "journal.sqlite").write_text("not a database" * 500)
    listed = {one.id: one for one in experiments(base)}
    assert "cannot be read" in listed["mnist-ccc333"].problem
    assert not listed["digits-aaa111"].problem


def test_found_by_id_beginning_name_and_folder(base: Path) -> None:
    assert find_experiment("digits-bbb222", base).name == "digits-bbb222"
    assert find_experiment("digits-b", base).name == "digits-bbb222"
    assert find_experiment("mnist", base).name == "mnist-ccc333"
    assert find_experiment(str(base / "mnist-ccc333")) == base / "mnist-ccc333"


def test_several_or_none_are_told_apart(base: Path) -> None:
    with pytest.raises(UserError, match="2 experiments go by 'digits'") as several:
        find_experiment("digits", base)
    assert "digits-aaa111, digits-bbb222" in several.value.hint
    with pytest.raises(ExperimentNotFound) as near:
        find_experiment("mnits", base)
    assert near.value.hint.startswith("did you mean mnist")
    with pytest.raises(ExperimentNotFound) as far:
        find_experiment("zzz", base)
    assert "digits-aaa111" in far.value.hint
    with pytest.raises(ExperimentNotFound, match="no experiments yet"):
        find_experiment("x", base / "nowhere")
    with pytest.raises(ExperimentNotFound, match="in this folder"):
        find_experiment(str(base / "something else"))


def test_the_newest(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEQUEATH_HOME", str(base))
    assert base_folder() == base
    assert newest_experiment().parent == base


def test_without_a_home_it_is_the_default_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: the two, which do not import one another, drift apart."""
    from dispatcher.experiment.config import ExperimentConfig

    monkeypatch.delenv("BEQUEATH_HOME", raising=False)
    key = ExperimentConfig.model_fields["experiment_working_directory"]
    assert base_folder() == key.default.expanduser()


def _status(folder: Path) -> ExperimentStatus:
    with ExperimentReader.open(folder) as reader:
        return experiment_summary(reader).status


def test_status_from_birth_to_end(base: Path) -> None:
    folder = base / "mnist-ccc333"
    assert _status(folder) is ExperimentStatus.CREATED
    for phase in ("completed", "stopped", "failed"):
        with Leadership.acquire(folder) as lead:
            assert _status(folder) is ExperimentStatus.RUNNING
            journal = SqliteJournal.open(folder / "journal.sqlite")
            journal.record_end(lead.epoch, phase, f"because {phase}")
            journal.close()
        assert _status(folder) == phase
        with ExperimentReader.open(folder) as reader:
            assert experiment_summary(reader).phase_reason == f"because {phase}"


def test_what_an_earlier_head_said_is_not_said_of_one_that_was_killed(base: Path) -> None:
    folder = base / "mnist-ccc333"
    with Leadership.acquire(folder) as lead:
        journal = SqliteJournal.open(folder / "journal.sqlite")
        journal.record_end(lead.epoch, "stopped", "user")
        journal.close()
    Leadership.acquire(folder).release()
    assert _status(folder) is ExperimentStatus.INTERRUPTED


def test_asking_does_not_keep_a_head_from_starting(base: Path) -> None:
    folder = base / "mnist-ccc333"
    Leadership.acquire(folder).release()
    assert _status(folder) is ExperimentStatus.INTERRUPTED
    Leadership.acquire(folder).release()


def test_summary(base: Path) -> None:
    folder = base / "digits-aaa111"
    with ExperimentReader.open(folder) as reader, Leadership.acquire(folder) as lead:
        found = experiment_summary(reader, now=reader.rows("SELECT max(at) FROM journal")[0][0])
        assert found.pid == lead.leader.pid
        assert (found.submitted, found.ended, found.max_trials, found.slots) == (6, 6, 10, 2)
        assert found.outcomes == {"succeeded": 6}
        assert found.states == {"ended": 6, "open": 2}
        assert found.best is not None
        assert found.best.value == max(row["value"] for row in export_rows(reader) if row["value"])
        assert found.rate is not None
        assert found.rate > 0
        assert found.time_left_s == pytest.approx(4 / found.rate)
        json.dumps(found.to_json())


def test_who_is_still_being_delivered_is_not_among_the_outcomes(base: Path) -> None:
    """Mutation: "122 over: 2 failed, 121 succeeded"."""
    folder = base / "digits-aaa111"
    with closing(sqlite3.connect(folder / "journal.sqlite")) as store, store:
        store.execute("UPDATE trials SET state = 'delivering' WHERE outcome IS NOT NULL AND id = 0")
    with ExperimentReader.open(folder) as reader:
        found = experiment_summary(reader)
    assert (found.ended, found.outcomes) == (5, {"succeeded": 5})


def test_the_store_can_be_read_without_the_file(base: Path) -> None:
    (base / "mnist-ccc333" / "experiment.json").unlink()
    with ExperimentReader.open(base / "mnist-ccc333") as reader:
        assert experiment_summary(reader).name == "mnist-ccc333"


def test_progress(base: Path) -> None:
    with ExperimentReader.open(base / "digits-aaa111") as reader:
        shown = progress(reader)
    assert len(shown.points) == 6
    bests = [point.best for point in shown.points]
    assert bests == sorted(bests)
    assert shown.points[0].improved
    assert all(point.value == point.best for point in shown.improvements)
    assert [p.elapsed_s for p in shown.points] == sorted(p.elapsed_s for p in shown.points)


def test_csv(base: Path) -> None:
    with ExperimentReader.open(base / "digits-aaa111") as reader:
        rows = list(csv.DictReader(io.StringIO(export_csv(reader))))
        told = export_rows(reader)
    assert [row["trial"] for row in rows] == [str(row["trial"]) for row in told]
    assert float(rows[0]["parameters.lr"]) == told[0]["parameters.lr"]
    assert rows[0]["parent"] == ""
    assert rows[-1]["value"] == ""


def test_line_ends_of_other_systems_in_cells_of_csv() -> None:
    """Mutation: only the line ends of our rows are quoted, and a carriage return ends a row."""
    out = CsvText()
    rows = [["a", "b"], ["10%\r20%", "x"], ["one\r\ntwo\r\n", "y\r\n"]]
    csv.writer(out).writerows(rows)
    assert list(csv.reader(io.StringIO(out.getvalue(), newline=""))) == rows
    assert out.getvalue().startswith("a,b\n")
    assert out.getvalue().endswith('"\n')


def test_a_cell_is_never_a_formula(tmp_path: Path) -> None:
    assert cell_text("=HYPERLINK()") == "'=HYPERLINK()"
    assert cell_text(-0.5) == -0.5
    assert cell_text([1, 2]) == "[1, 2]"
    # Where ";" or a tab ends a cell.
    assert cell_text("a;=HYPERLINK()") == "a;'=HYPERLINK()"
    assert cell_text(["a; +1"]) == '["a;\' +1"]'
    assert cell_text("a\t@b") == "a\t'@b"
    assert cell_text("a;b=1") == "a;b=1"
