"""The file by which a real NNI speaks: its records, in whatever pieces they come."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.workers import LOCAL
from trial_runtime import facts
from trial_runtime.agent.attempt import Attempt, Phase
from trial_runtime.agent.base.loop import Timers
from trial_runtime.agent.config import TrialSpec
from trial_runtime.agent.link.reports import Reports
from trial_runtime.agent.nni import METRICS_FILE, NniMetrics, read_part, records
from trial_runtime.session_file import SESSION_VERSION, SessionFile


def record(kind: str, value: Any, *, twice: bool = True) -> bytes:
    """As NNI's library writes it; values are JSON within JSON since v1.5."""
    told = {"parameter_id": 3, "trial_job_id": "3", "type": kind, "sequence": 0}
    body = json.dumps({**told, "value": json.dumps(value) if twice else value}) + "\n"
    return b"ME%06d%s" % (len(body.encode()), body.encode())


class Words:
    """An outbox that keeps what is added."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def add(self, word: Any, *, urgent: bool) -> None:
        self.said.append(word)


def nni_metrics(spec: TrialSpec, outbox: Words) -> NniMetrics:
    return NniMetrics(spec, Reports(spec, outbox), Timers())  # type: ignore[arg-type]


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    session = SessionFile(SESSION_VERSION, "", "", 3, 1, str(tmp_path), "{}")
    (tmp_path / ".nni").mkdir()
    made = Attempt(facts.StartAttempt(LOCAL, 3, 1, "{}"), session, "")
    made.phase = Phase.RUNNING
    return made


def test_records_come_in_pieces_and_none_is_read_twice(attempt: Attempt) -> None:
    outbox, path = Words(), Path(attempt.session.folder) / METRICS_FILE
    metrics = nni_metrics(TrialSpec("/code", nni=True), outbox)
    whole = record("REQUEST_PARAMETER", 0) + record("PERIODICAL", 0.25)
    whole += record("PERIODICAL", "text", twice=False) + record("FINAL", {"accuracy": [1]})
    for cut in range(0, len(whole) + 16, 16):
        path.write_bytes(whole[:cut])
        metrics.follow(attempt)
    metrics.last(attempt)
    assert [(type(word), word.seq, word.value) for word in outbox.said] == [
        (facts.MetricReported, 1, "0.25"),
        (facts.MetricReported, 2, '"text"'),
        (facts.FinalReported, 3, '{"accuracy":[1]}'),
    ]


def test_what_nobody_can_hold_is_left_out(attempt: Attempt) -> None:
    outbox, path = Words(), Path(attempt.session.folder) / METRICS_FILE
    spec = TrialSpec("/code", nni=True, max_metric_bytes=100, max_metrics=2)
    metrics = nni_metrics(spec, outbox)
    metrics.last(attempt)  # there is no file
    path.write_bytes(
        b"rubbish ME12x"
        + record("PERIODICAL", float("nan"))
        + record("PERIODICAL", "x" * 500)
        + b"".join(record("PERIODICAL", number) for number in range(5))
        + record("FINAL", 7)
    )
    metrics.last(attempt)
    assert [word.value for word in outbox.said] == ["0", "1", "7"]


def test_a_broken_record_hides_no_other() -> None:
    good = record("FINAL", 1)
    found = [value for value, _ in records(b"ME000004nope" + good)]
    assert found[0] is None
    assert found[1]["type"] == "FINAL"


def test_only_a_regular_file_is_read_and_no_link_is_followed(
    attempt: Attempt, tmp_path: Path
) -> None:
    path = tmp_path / METRICS_FILE
    (tmp_path / "elsewhere").write_bytes(record("FINAL", 1))
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        read_part(str(tmp_path), 0)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError, match="no regular file"):
        read_part(str(tmp_path), 0)
    path.unlink()
    path.parent.rmdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "metrics").write_bytes(record("FINAL", 1))
    path.parent.symlink_to("other")
    with pytest.raises(OSError):
        read_part(str(tmp_path), 0)


@pytest.mark.parametrize("value", ["[" * 5_000, "[" * 500 + "]" * 500, "{" * 900_000])
def test_deep_values_are_left_out_and_others_are_read(attempt: Attempt, value: str) -> None:
    outbox, path = Words(), Path(attempt.session.folder) / METRICS_FILE
    metrics = nni_metrics(TrialSpec("/code", nni=True), outbox)
    body = b'{"type": "FINAL", "value": ' + value.encode() + b"}\n"
    path.write_bytes(
        b"ME%06d%s" % (len(body), body) + record("FINAL", value, twice=False) + record("FINAL", 7)
    )
    metrics.last(attempt)
    assert [word.value for word in outbox.said][-1:] == ["7"]
    assert all(len(word.value) < 70_000 for word in outbox.said)


def test_rubbish_is_passed_by_and_what_follows_it_is_read(attempt: Attempt) -> None:
    """Mutation: the same rubbish is read twice a second for ever."""
    outbox, path = Words(), Path(attempt.session.folder) / METRICS_FILE
    metrics = nni_metrics(TrialSpec("/code", nni=True), outbox)
    path.write_bytes(b"ME12x" + b"M" * 5_000_000 + record("FINAL", 7))
    metrics.last(attempt)
    assert [word.value for word in outbox.said] == ["7"]


def test_no_more_is_read_than_a_bound(attempt: Attempt) -> None:
    outbox, path = Words(), Path(attempt.session.folder) / METRICS_FILE
    metrics = nni_metrics(TrialSpec("/code", nni=True), outbox)
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a hole
        file.seek(0)
        file.write(record("FINAL", 7))
    metrics.last(attempt)
    assert [word.value for word in outbox.said] == ["7"]


def test_a_final_result_behind_more_metrics_than_are_read_counts(attempt: Attempt) -> None:
    """And the end says what does not. Mutation: what is behind the bound is not looked at."""
    outbox, path = Words(), Path(attempt.session.folder) / METRICS_FILE
    metrics = nni_metrics(TrialSpec("/code", nni=True, max_metrics=10**9), outbox)
    metric = record("PERIODICAL", "x" * 60_000)
    path.write_bytes(metric * 400 + record("FINAL", 7))
    metrics.last(attempt)
    metrics, final = outbox.said[:-1], outbox.said[-1]
    assert (type(final), final.value) == (facts.FinalReported, "7")
    assert all(type(each) is facts.MetricReported for each in metrics)
    assert len(metrics) < 400
    assert "bytes of them are left out; a final result behind them counts" in attempt.remark


def test_what_is_just_read_to_its_end_has_no_gap(attempt: Attempt) -> None:
    outbox, path = Words(), Path(attempt.session.folder) / METRICS_FILE
    metrics = nni_metrics(TrialSpec("/code", nni=True, max_metrics=10**9), outbox)
    metric = record("PERIODICAL", "x" * 60_000)
    path.write_bytes(metric * 290 + record("FINAL", 7))
    metrics.last(attempt)
    assert [type(each) for each in outbox.said] == [facts.MetricReported] * 290 + [
        facts.FinalReported
    ]
    assert attempt.remark == ""
