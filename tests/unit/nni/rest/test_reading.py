"""Each route of NNI's REST that reads, over a store that the real core writes meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dispatcher import queries
from dispatcher.api import Experiment
from dispatcher.cli.experiment.verbs import Format
from dispatcher.control.server import snapshot
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason
from dispatcher.experiments.standing import standing
from dispatcher.nni.commands import experiment as commands
from dispatcher.nni.rows import is_job, job
from dispatcher.web.table import TrialTable
from tests.unit.nni.rest.conftest import EXPERIMENT, Asked, Make


def live(asked: Asked) -> None:
    """Trial 0 succeeds, 1 fails, 2 and 3 run, of which 2 has reported twice, 4 waits."""
    for trial in range(4):
        asked.life.propose(trial)
    asked.life.run(0, value='{"default": 0.75, "loss": 2}')
    asked.life.deliver(0)
    asked.life.say(e.AttemptStarted(TrialId(1), 1, 1))
    asked.life.exit(1, reason=EndReason.FAILED, text="no memory")
    asked.life.deliver(1)
    asked.life.propose(4)
    asked.life.say(e.AttemptStarted(TrialId(2), 1, 2))
    report(asked, 2, 1, "0.25")
    report(asked, 2, 2, "0.5")


def report(asked: Asked, trial: int, seq: int, value: str, attempt: int = 1) -> None:
    asked.life.say(e.MetricReported(TrialId(trial), attempt, seq, value))


def words(asked: Asked) -> dict[str, str]:
    return {one["trialJobId"]: one["status"] for one in asked.get("/trial-jobs")}


def data(metric: dict[str, Any]) -> Any:
    """A value as NNI's client reads it."""
    return json.loads(json.loads(metric["data"]))


def test_a_text_says_the_version_which_the_page_reads_as_a_text(asked: Asked) -> None:
    answer = asked("GET", "/version")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.body.count(b".") >= 2


def test_the_state_is_one_word_and_the_errors(asked: Asked) -> None:
    assert asked.get("/check-status") == {"status": "INITIALIZED", "errors": []}


def test_trials_are_those_of_nnictl_trial_ls_with_times_in_milliseconds(asked: Asked) -> None:
    live(asked)
    listed = asked.get("/trial-jobs")
    assert [one["trialJobId"] for one in listed] == ["0", "1", "2", "3", "4"]
    assert words(asked) == {
        "0": "SUCCEEDED",
        "1": "FAILED",
        "2": "RUNNING",
        "3": "RUNNING",
        "4": "WAITING",
    }
    with queries.ExperimentReader.open(asked.folder) as reader:
        trials = [one for one in queries.list_trials(reader) if is_job(one)]
    for trial, one in zip(trials, listed, strict=True):
        rows = job(trial, asked.folder)
        same = ("trialJobId", "sequenceId", "status", "hyperParameters", "logPath")
        assert {name: one[name] for name in same} == {name: rows[name] for name in same}
        assert one.get("finalMetricData") == rows.get("finalMetricData")
        if trial.started_at is not None:
            assert one["startTime"] == int(1000 * trial.started_at)
        assert ("endTime" in one) == trial.over
    assert json.loads(listed[0]["hyperParameters"][0])["parameters"] == {"x": 0}
    assert data(listed[0]["finalMetricData"][0]) == {"default": 0.75, "loss": 2}
    assert listed[1]["stderrPath"].endswith("/trials/1/stderr")
    assert listed[4]["startTime"] > 0, "NNI's client demands one of each trial"


@pytest.mark.parametrize(
    "status, found", [("RUNNING", ["2", "3"]), ("SUCCEEDED", ["0"]), ("UNKNOWN", []), ("x", [])]
)
def test_trials_of_one_state_are_asked_for(asked: Asked, status: str, found: list[str]) -> None:
    live(asked)
    listed = asked.get(f"/trial-jobs?status={status}")
    assert [one["trialJobId"] for one in listed] == found


def test_one_trial_is_asked_for(asked: Asked) -> None:
    live(asked)
    assert asked.get("/trial-jobs/2") == asked.get("/trial-jobs")[2]
    for name in ("77", "abc", "-1", "9" * 40, "%00"):
        answer = asked("GET", f"/trial-jobs/{name}")
        assert answer.status == 404, name
        assert "trial" in answer.json()["error"]


def test_a_request_that_has_no_parameters_yet_is_no_trial_of_nnis(asked: Asked) -> None:
    asked.life.propose(0)
    with queries.ExperimentReader.open(asked.folder) as reader:
        assert len(queries.list_trials(reader)) > 1
    assert [one["trialJobId"] for one in asked.get("/trial-jobs")] == ["0"]
    assert asked("GET", "/trial-jobs/1").status == 404


def test_statistics_count_what_is_listed(asked: Asked) -> None:
    assert asked.get("/job-statistics") == []
    live(asked)
    counts = {one["trialJobStatus"]: one["trialJobNumber"] for one in asked.get("/job-statistics")}
    assert counts == {"SUCCEEDED": 1, "FAILED": 1, "RUNNING": 2, "WAITING": 1}


def test_all_who_show_one_moment_show_the_same(asked: Asked) -> None:
    """NNI's rows, the page's table, a notebook, `status` and the head; that the live view says what
    `status` says is tested with it. Mutation: any of them counts by a rule of its own."""
    live(asked)
    counted = snapshot(asked.life.state, asked.life.now)
    told = standing(asked.folder).experiment
    with queries.ExperimentReader.open(asked.folder) as reader:
        table = TrialTable()
        table.put(queries.flat_trials(reader))
    notebook = Experiment.open(asked.folder).status()
    assert (notebook.states, notebook.outcomes) == (told.states, told.outcomes)
    assert notebook.best == told.best
    page = {one["name"]: one for one in table.described()["columns"]}

    def tally(name: str) -> dict[str, int]:
        words = [page[name]["choices"][at] for at in page[name]["values"] if at is not None]
        return dict(Counter(words))

    assert tally("state") == told.states
    assert tally("outcome") == told.outcomes
    assert {state: counted["counts"][state] for state in ("running", "queued", "open")} == {
        state: told.states[state] for state in ("running", "queued", "open")
    }
    assert (counted["submitted"], counted["ended"]) == (told.submitted, told.ended)
    nnis = {one["trialJobStatus"]: one["trialJobNumber"] for one in asked.get("/job-statistics")}
    assert sum(nnis.values()) == told.submitted
    assert nnis["RUNNING"] == told.states["running"]
    assert nnis["SUCCEEDED"] == told.outcomes["succeeded"]
    assert nnis["FAILED"] == told.outcomes["failed"]

    assert told.best is not None
    values = [one for one in page["value"]["values"] if one is not None]
    final = asked.get("/trial-jobs/0")["finalMetricData"]
    assert told.best.id == 0
    assert told.best.value == max(values) == data(final[0])["default"]


def test_what_changes_is_seen_by_the_next_request(asked: Asked) -> None:
    """Mutation: a table that is read once."""
    live(asked)
    assert words(asked)["2"] == "RUNNING"
    asked.life.say(e.FinalReported(TrialId(2), 1, 3, "0.9"))
    asked.life.exit(2)
    assert words(asked)["2"] == "SUCCEEDED"
    assert words(asked)["4"] == "RUNNING"


def test_metrics_are_numbered_without_holes_and_final_ones_come_with_them(asked: Asked) -> None:
    live(asked)
    metrics = asked.get("/metric-data")
    seen = [(one["trialJobId"], one["type"], one["sequence"], data(one)) for one in metrics]
    assert seen == [
        ("0", "PERIODICAL", 0, 0.1),
        ("0", "PERIODICAL", 1, 0.2),
        ("0", "FINAL", 0, {"default": 0.75, "loss": 2}),
        ("2", "PERIODICAL", 0, 0.25),
        ("2", "PERIODICAL", 1, 0.5),
    ]
    assert asked.get("/metric-data/") == metrics
    assert asked.get("/metric-data/2") == metrics[3:]
    assert asked.get("/metric-data?type=FINAL") == metrics[2:3]
    assert asked.get("/metric-data?type=PERIODICAL") == metrics[:2] + metrics[3:]
    assert asked("GET", "/metric-data/99").status == 404


def test_metrics_of_a_range_of_trials_are_asked_for(asked: Asked) -> None:
    live(asked)
    whole = asked.get("/metric-data")
    assert asked.get("/metric-data-range/0/1") == whole[:3]
    assert asked.get("/metric-data-range/2/9") == whole[3:]
    assert asked.get("/metric-data-range/5/9") == []
    assert asked("GET", "/metric-data-range/a/9").status == 400
    assert asked("GET", f"/metric-data-range/0/{'9' * 30}").status == 400


def test_the_newest_metrics_are_final_ones_and_one_of_each_trial(asked: Asked) -> None:
    live(asked)
    whole = asked.get("/metric-data")
    assert asked.get("/metric-data-latest") == [whole[2], whole[1], whole[4]]
    report(asked, 2, 3, "0.625")
    latest = asked.get("/metric-data-latest/")
    assert (latest[-1]["sequence"], data(latest[-1])) == (2, 0.625)
    assert latest[-1] == asked.get("/metric-data/2")[-1]


def test_metrics_are_those_of_the_attempt_that_counts(make: Make) -> None:
    """Mutation: without the look at the attempt the second one's would begin at number 2."""
    asked = make(retries=1)
    asked.life.propose(0)
    asked.life.say(e.AttemptStarted(TrialId(0), 1, 1))
    report(asked, 0, 1, "0.1")
    report(asked, 0, 2, "0.2")
    assert [data(one) for one in asked.get("/metric-data-latest")] == [0.2]
    asked.life.exit(0, reason=EndReason.FAILED)
    asked.life.say(e.AttemptStarted(TrialId(0), 2, 1))
    assert asked.get("/metric-data-latest") == asked.get("/metric-data/0") == []
    report(asked, 0, 1, "0.7", attempt=2)
    assert [(one["sequence"], data(one)) for one in asked.get("/metric-data/0")] == [(0, 0.7)]
    assert [(one["sequence"], data(one)) for one in asked.get("/metric-data-latest")] == [(0, 0.7)]


def test_many_trials_come_in_pieces_that_make_one_list(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(asked)
    whole = asked.get("/metric-data")
    monkeypatch.setattr("dispatcher.nni.rest.reading.TRIALS_AT_ONCE", 1)
    assert asked.get("/metric-data") == whole


def test_results_are_those_of_nnictl_experiment_export(asked: Asked, tmp_path: Path) -> None:
    live(asked)
    file = tmp_path / "out.json"
    commands.export(file, Format.JSON, False, str(asked.folder))
    assert asked.get("/export-data") == json.loads(file.read_text())
    assert asked.get("/export-data") == [
        {"parameter": {"x": 0}, "value": '{"default": 0.75, "loss": 2}', "trialJobId": "0"}
    ]


def test_the_profile_has_nnis_keys_and_what_its_page_reads(asked: Asked) -> None:
    live(asked)
    profile = asked.get("/experiment")
    assert profile["id"] == EXPERIMENT
    assert (profile["nextSequenceId"], profile["maxSequenceId"]) == (5, 4)
    assert profile["startTime"] == 1_001_000
    assert "endTime" not in profile
    params = profile["params"]
    assert params["experimentName"] == "digits"
    assert params["trialConcurrency"] == 2
    assert params["maxExperimentDuration"] == "7200s"
    assert params["trialCommand"] == "true"
    assert params["searchSpace"] == {"x": {"_type": "uniform", "_value": [0, 1]}}
    assert params["tuner"]["classArgs"] == {"optimize_mode": "maximize"}
    assert params["trainingService"] == {"platform": "local"}


def test_the_list_of_experiments_has_the_one_that_is_asked(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEQUEATH_HOME", str(asked.folder.parent))
    line = asked.get("/experiment-metadata")
    assert (line["id"], line["port"], line["status"]) == (EXPERIMENT, 8080, "INITIALIZED")
    assert (line["pid"], line["tag"], line["endTime"]) == (None, [], "N/A")
    other = asked.folder.parent / "other-xyz789"
    shutil.copytree(asked.folder, other)
    listed = asked.get("/experiments-info")
    assert {one["id"] for one in listed} == {EXPERIMENT, "other-xyz789"}
    assert line in listed
    assert {one["platform"] for one in listed} == {"local"}


def test_files_of_a_trial_are_its_outputs_only(asked: Asked) -> None:
    asked.life.propose(0)
    for name in ("model.onnx", "..%2Fx", "parameter.cfg"):
        assert asked("GET", f"/trial-file/0/{name}").status == 404
    assert asked("GET", "/trial-file/77/stdout").status == 404


def test_logs_are_the_heads_and_the_tuners(asked: Asked) -> None:
    logs = asked.folder / "logs"
    logs.mkdir(exist_ok=True)
    (logs / "head.log").write_text("<b>head</b>")
    (logs / "tuner.log").write_text("x" * (2 << 20) + "tail")
    head = asked("GET", "/logs/nnimanager.log", api="")
    assert head.body == b"<b>head</b>"
    assert head.headers["content-type"].startswith("text/plain")
    assert head.headers["content-security-policy"].startswith("sandbox")
    tuner = asked("GET", "/logs/dispatcher.log", api="").body
    assert len(tuner) == 1 << 20
    assert tuner.endswith(b"tail")
    assert asked("GET", "/logs/head.log", api="").status == 404


def test_a_log_that_is_no_file_is_empty(asked: Asked) -> None:
    """Mutation: a pipe holds a thread for ever, and a link shows a file of another place."""
    logs = asked.folder / "logs"
    logs.mkdir(exist_ok=True)
    os.mkfifo(logs / "head.log")
    (asked.folder / "key").write_text("secret")
    (logs / "tuner.log").symlink_to(asked.folder / "key")
    for name in ("nnimanager.log", "dispatcher.log"):
        answer = asked("GET", f"/logs/{name}", api="")
        assert (answer.status, answer.body) == (200, b"")


def test_an_experiment_that_is_deleted_is_not_found(asked: Asked) -> None:
    live(asked)
    assert asked.get("/trial-jobs")
    shutil.rmtree(asked.folder)
    for path in ("/trial-jobs", "/metric-data-latest", "/job-statistics", "/check-status"):
        answer = asked("GET", path)
        assert answer.status == 404, path
        assert EXPERIMENT in answer.json()["error"] or "no experiment" in answer.json()["error"]


def test_a_store_in_the_place_of_another_is_read(asked: Asked) -> None:
    """Mutation: a reader that is kept whatever file the name stands for."""
    live(asked)
    assert len(asked.get("/trial-jobs")) == 5
    store = asked.folder / "journal.sqlite"
    asked.life.journal.close()
    copy = store.with_name("copy.sqlite")
    shutil.copy(store, copy)
    with sqlite3.connect(copy) as connection:
        connection.execute("DELETE FROM trials WHERE id > 0")
    connection.close()
    for name in ("journal.sqlite-wal", "journal.sqlite-shm"):
        (asked.folder / name).unlink(missing_ok=True)
    os.replace(copy, store)
    assert [one["trialJobId"] for one in asked.get("/trial-jobs")] == ["0"]


def test_what_nni_has_and_we_begin_elsewhere_says_where(asked: Asked) -> None:
    assert asked.get("/tensorboard-tasks") == []
    for method, path, hint in (
        ("POST", "/tensorboard", "bequeath tensorboard"),
        ("DELETE", "/tensorboard-tasks", "bequeath tensorboard"),
        ("POST", "/experiment", "bequeath nni create"),
        ("PUT", "/experiment/cluster-metadata", "bequeath nni create"),
    ):
        answer = asked(method, path, {})
        assert answer.status == 501, path
        assert hint in answer.json()["error"]


def test_what_is_not_there_is_not_nnis_page(asked: Asked) -> None:
    answer = asked("GET", "/nothing")
    assert (answer.status, set(answer.json())) == (404, {"error"})
    answer = asked("PATCH", "/experiment", {})
    assert (answer.status, set(answer.json())) == (405, {"error"})
