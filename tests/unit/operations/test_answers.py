"""What operations answer, carried out on experiments that no head leads."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from dispatcher import Experiment
from dispatcher.errors import ExperimentNotFound, PassingBackendError, UserError
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.experiments.sweeping import ClearedAllocations
from dispatcher.operations.openapi import document
from dispatcher.operations.operation import Context, arguments_of, perform
from dispatcher.operations.table import operation


def done(name: str, folder: Path, trial: int | None = None, **arguments: Any) -> Any:
    """The answer of an operation, which fits the schema of its type."""
    row = operation(name)
    answer = perform(
        row, Context(), arguments_of(row, arguments), experiment=str(folder), trial=trial
    )
    if row.route and isinstance(answer, msgspec.Struct):
        components = document("0.1.0")["components"]
        reference = {"$ref": f"#/components/schemas/{row.answer.__name__}"}
        plain = json.loads(msgspec.json.encode(answer))
        Draft202012Validator({**reference, "components": components}).validate(plain)
    return answer


def test_looks_at_one_experiment(folder: Path) -> None:
    assert done("experiment show", folder).settings["trialConcurrency"] == 2
    rows = done("experiment export", folder)
    assert [row["trial"] for row in rows[:8]] == [*range(8)]
    assert done("experiment csv", folder).startswith("trial,state,outcome,value")
    assert done("trial show", folder, 3).trial.id == 3
    assert [one.id for one in done("trial ls", folder, state=["Failed"]).trials] == []
    assert len(done("trial ls", folder, where="outcome!=failed", limit=2).trials) == 2
    with pytest.raises(UserError, match="'walking' is no state"):
        done("trial ls", folder, state=["walking"])
    with pytest.raises(UserError, match="cannot be sorted by"):
        done("trial ls", folder, sort="mood")


def test_states_are_spelt_as_people_do(folder: Path) -> None:
    with pytest.raises(UserError) as refused:
        done("trial ls", folder, state=["succeded"])
    assert refused.value.hint == "did you mean 'succeeded'?"
    assert len(done("trial ls", folder, state=["SUCCEEDED", "timed-out"]).trials) == 8


def test_weights_are_measured_kept_and_planned(folder: Path) -> None:
    assert done("weights pin", folder, 3, note="for the paper").pinned
    used = done("weights du", folder)
    assert used.total_bytes == 0
    assert not done("weights unpin", folder, 3).pinned
    planned, swept = (done(f"weights {verb}", folder, keep="best:3") for verb in ("plan", "gc"))
    assert (planned.done, swept.done) == (False, True)
    assert planned.kept.keys() == swept.kept.keys()
    assert done("weights versions", folder).stores == {}
    for keep in ("best:many", "best", "nothing"):
        with pytest.raises(UserError):
            done("weights plan", folder, keep=keep)


def test_care_of_the_store(folder: Path, tmp_path: Path) -> None:
    assert done("experiment verify", folder).ok
    assert done("experiment verify", folder, rebuild=True).ok
    assert done("experiment compact", folder).bytes > 0
    copy = done("experiment backup", folder, destination=str(tmp_path / "copies"))
    assert Path(copy.folder) == tmp_path / "copies" / folder.name
    with pytest.raises(UserError, match="an empty path is no folder"):
        done("experiment backup", folder, destination="")


def test_a_limit_is_changed(folder: Path) -> None:
    changed = done("experiment update", folder, key="maxTrialNumber", value=3)
    assert (changed.running, changed.beyond) == (False, 8)
    assert ExperimentHandle(folder).config().max_trial_number == 3


@pytest.mark.parametrize("name", ["stop", "trial kill", "trial submit", "experiment import"])
def test_some_need_a_head(folder: Path, name: str) -> None:
    arguments: dict[str, Any] = {
        "trial kill": {"trials": [1]},
        "trial submit": {"parameters": {"x": 1}},
        "experiment import": {"rows": [{"parameter": {}, "value": 1}]},
    }.get(name, {})
    with pytest.raises(PassingBackendError, match="is not running"):
        done(name, folder, **arguments)


def test_results_are_looked_at_before_the_first_is_sent(folder: Path) -> None:
    with pytest.raises(UserError, match="result 1 has no 'value'"):
        done("experiment import", folder, rows=[{"parameter": {}}])


def test_an_import_names_the_log_with_the_tuners_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tuner reads results later, and may use none. Mutation: only their count is shown."""
    monkeypatch.setattr(ExperimentHandle, "import_results", lambda *_: None)
    noted: list[str] = []
    row = operation("experiment import")
    wish = arguments_of(row, {"rows": [{"parameter": {}, "value": 1}]})
    with (folder / "head.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as if a head were there
        answer = perform(row, Context(note=noted.append), wish, experiment=str(folder))
    assert answer.rows == 1
    assert len(noted) == 1
    assert str(folder / "logs" / "head.log") in noted[0]


def test_a_stop_without_a_head_cancels_what_it_has_left(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: a scheduler is asked where nothing can be left, or the refusal is lost."""
    swept: list[str] = []

    def sweep(self: ExperimentHandle) -> ClearedAllocations:
        swept.append(self.id)
        return ClearedAllocations(("b-1", "b-2"), ("b-3 could not be asked",))

    monkeypatch.setattr(ExperimentHandle, "sweep", sweep)
    with pytest.raises(PassingBackendError):
        done("stop", folder)
    assert swept == []
    monkeypatch.setattr(ExperimentHandle, "left_at_schedulers", lambda _: ["slurm"])
    answer = done("stop", folder)
    assert (answer.kind, answer.stopped, answer.allocations) == ("now", True, ("b-1", "b-2"))
    assert swept == [folder.name]


def test_a_head_is_started_and_what_will_be_missed_is_noted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads: list[bool] = []
    notes: list[str] = []

    def start(self: ExperimentHandle, *, take_over: bool = False) -> int:
        heads.append(take_over)
        return 4711

    monkeypatch.setattr(ExperimentHandle, "start", start)
    monkeypatch.setattr(ExperimentHandle, "going_on_warning", lambda _: "weights are gone")
    for name in ("resume", "take over"):
        answer = perform(operation(name), Context(note=notes.append), experiment=str(folder))
        assert (answer.experiment, answer.pid) == (folder.name, 4711)
    assert heads == [False, True]
    assert notes == ["weights are gone"] * 2


@pytest.mark.parametrize("name", ["{folder}", ".", "..", "../{id}", "~/{id}"])
def test_over_a_network_a_path_is_no_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Mutation: a folder of this machine is looked into because somebody elsewhere names it."""
    monkeypatch.chdir(folder)
    context = Context(paths=False)
    assert perform(operation("why"), context, experiment=folder.name).experiment == folder.name
    typed = name.format(folder=folder, id=folder.name)
    with pytest.raises(ExperimentNotFound, match="no experiment goes by"):
        perform(operation("why"), context, experiment=typed)


def test_python_gets_the_answers(folder: Path) -> None:
    experiment = Experiment.open(folder)
    assert [one.id for one in experiment.perform("trial ls", where="trial in (1, 3)").trials] == [
        1,
        3,
    ]
    assert experiment.perform("weights pin", trial=1, note="mine").pinned
    assert experiment.why() == experiment.perform("why").text
    experiment.update("max_trial_number", 30)
    assert experiment.config.max_trial_number == 30
    with pytest.raises(UserError, match="cannot take this"):
        experiment.perform("trial ls", wher="x=1")


def test_files_are_fetched_worker_by_worker(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    away = PassingBackendError("not to be reached")
    answer = [("gpu1", 3, None), ("gpu2", 0, away)]
    monkeypatch.setattr(ExperimentHandle, "fetch", lambda *_: answer)
    parts: list[Any] = []
    context = Context(part=parts.append)
    fetched = perform(operation("experiment fetch"), context, experiment=str(folder))
    assert {name: (one.attempts, one.error) for name, one in fetched.workers.items()} == {
        "gpu1": (3, None),
        "gpu2": (0, "not to be reached"),
    }
    assert parts == [*fetched.workers.items()]
