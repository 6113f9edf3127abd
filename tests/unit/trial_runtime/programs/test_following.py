"""Reports of a program: bounded, and the final one where it ended well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.workers import LOCAL
from trial_runtime import facts
from trial_runtime.agent.attempt import Attempt, Exit, Phase
from trial_runtime.agent.base.loop import Timers
from trial_runtime.agent.config import MetricsSpec, TrialSpec
from trial_runtime.agent.link.reports import Reports
from trial_runtime.agent.programs import following
from trial_runtime.agent.programs.following import ProgramReports
from trial_runtime.facts import EndReason
from trial_runtime.session_file import SESSION_VERSION, SessionFile

PRINTED = MetricsSpec("acc", streams=("stdout", "stderr"))


class Outbox:
    """Keeps what is added."""

    def __init__(self) -> None:
        self.facts: list[Any] = []

    def add(self, fact: Any, *, urgent: bool) -> None:
        self.facts.append(fact)

    def values(self, kind: type) -> list[str]:
        return [fact.value for fact in self.facts if type(fact) is kind]


@pytest.fixture
def outbox() -> Outbox:
    return Outbox()


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    session = SessionFile(SESSION_VERSION, "", "", 3, 1, str(tmp_path), "{}")
    made = Attempt(facts.StartAttempt(LOCAL, 3, 1, "{}"), session, "")
    made.phase = Phase.RUNNING
    return made


def program_reports(outbox: Outbox, metrics: MetricsSpec, **spec: Any) -> ProgramReports:
    trial = TrialSpec("/code", **spec)
    return ProgramReports(trial, metrics, Reports(trial, outbox), Timers())  # type: ignore[arg-type]


def test_what_is_printed_is_reported_as_it_comes(outbox: Outbox, attempt: Attempt) -> None:
    reports = program_reports(outbox, PRINTED)
    taps = reports.taps(attempt)
    assert set(taps) == {"stdout", "stderr"}
    taps["stdout"](b"acc=0.1\nacc=0.")
    taps["stderr"](b"acc=0.2\n")
    taps["stdout"](b"3\nacc=0.4")
    assert outbox.values(facts.MetricReported) == ["0.1", "0.2", "0.3"]
    attempt.exit = Exit(code=0)
    reports.last(attempt)
    assert outbox.values(facts.MetricReported)[3:] == ["0.4"], "a line that nothing ended"
    assert outbox.values(facts.FinalReported) == ["0.4"]
    assert attempt.remark == ""


@pytest.mark.parametrize(
    "outcome, stopped",
    [
        (Exit(code=1), None),
        (Exit(signal=9), None),
        (Exit(lost=True), None),
        (Exit(code=0), EndReason.STOPPED_EARLY),
    ],
)
def test_there_is_no_final_result_but_at_success(
    outbox: Outbox, attempt: Attempt, outcome: Exit, stopped: EndReason | None
) -> None:
    """Mutation: an attempt that failed has a final result, and so is never tried again."""
    reports = program_reports(outbox, PRINTED)
    reports.taps(attempt)["stdout"](b"acc=0.1\n")
    attempt.exit, attempt.stop_reason = outcome, stopped
    reports.last(attempt)
    assert outbox.values(facts.FinalReported) == []
    assert outbox.values(facts.MetricReported) == ["0.1"]
    assert attempt.remark == ""


def test_a_result_that_it_reported_itself_counts(outbox: Outbox, attempt: Attempt) -> None:
    reports = program_reports(outbox, PRINTED)
    reports.taps(attempt)["stdout"](b"acc=0.1\n")
    attempt.has_final, attempt.exit = True, Exit(code=0)
    reports.last(attempt)
    assert outbox.values(facts.FinalReported) == []


def test_a_missing_result_is_explained(outbox: Outbox, attempt: Attempt) -> None:
    reports = program_reports(outbox, PRINTED)
    reports.taps(attempt)["stdout"](b"accuracy=0.1\nloss=3\n")
    attempt.exit = Exit(code=0)
    reports.last(attempt)
    assert attempt.remark == "no value of 'acc' was in its output"


def test_reports_are_bounded_and_the_result_is_not(outbox: Outbox, attempt: Attempt) -> None:
    """Mutation: of a program that prints a million values the result is the last one taken."""
    reports = program_reports(outbox, PRINTED, max_metrics=3)
    tap = reports.taps(attempt)["stdout"]
    for number in range(10):
        tap(f"acc={number}\n".encode())
    attempt.exit = Exit(code=0)
    reports.last(attempt)
    assert outbox.values(facts.MetricReported) == ["0.0", "1.0", "2.0"]
    assert outbox.values(facts.FinalReported) == ["9.0"]
    assert attempt.remark.startswith("7 intermediate results are left out")


def test_their_rate_is_bounded_too(outbox: Outbox, attempt: Attempt) -> None:
    reports = program_reports(outbox, PRINTED, max_message_rate=5)
    reports.taps(attempt)["stdout"](b"acc=1\n" * 1000)
    assert 5 <= len(outbox.facts) < 1000


def test_a_report_that_is_too_large_is_its_objective(outbox: Outbox, attempt: Attempt) -> None:
    names = tuple(f"metric_{number}" for number in range(20))
    metrics = MetricsSpec("acc", also=names, streams=("stdout",))
    reports = program_reports(outbox, metrics, max_metric_bytes=40)
    line = " ".join(f"{name}=1" for name in names)
    reports.taps(attempt)["stdout"](f"{line} acc=0.5\n".encode())
    assert outbox.values(facts.MetricReported) == ["0.5"]


def test_a_filter_that_is_too_slow_is_given_up(outbox: Outbox, attempt: Attempt) -> None:
    metrics = MetricsSpec("acc", streams=("stdout",), filters=(r"(a+)+(b)$", r"(\w+)=(\d)"))
    reports = program_reports(outbox, metrics)
    tap = reports.taps(attempt)["stdout"]
    tap(b"acc=1\n" + b"accaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n" * 5 + b"acc=2\n")
    attempt.exit = Exit(code=0)
    reports.last(attempt)
    assert outbox.values(facts.MetricReported) == ["1.0"]
    assert "3 lines are left out: the filters of 'metrics' take too long" in attempt.remark


def test_a_file_is_read_to_its_end(outbox: Outbox, attempt: Attempt, tmp_path: Path) -> None:
    metrics = MetricsSpec("acc", file="out/m.log")
    reports = program_reports(outbox, metrics)
    assert reports.taps(attempt) == {}
    path = tmp_path / "work" / "out" / "m.log"
    reports.follow(attempt)
    path.parent.mkdir(parents=True)
    path.write_text("acc=0.5\nacc=0.")
    reports.follow(attempt)
    assert outbox.values(facts.MetricReported) == ["0.5"]
    assert 0 < len(attempt.timers) <= 8
    path.write_text("acc=0.5\nacc=0.25")
    attempt.exit = Exit(code=0)
    reports.last(attempt)
    assert outbox.values(facts.FinalReported) == ["0.25"]


def test_of_a_file_without_bound_the_end_is_read(
    outbox: Outbox, attempt: Attempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: the agent reads gigabytes when a trial ends, or misses the last value."""
    for name, size in (("_LOOK_BYTES", 100), ("_LAST_BYTES", 1000), ("_END_BYTES", 300)):
        monkeypatch.setattr(following, name, size)
    reports = program_reports(outbox, MetricsSpec("acc", file="m"))
    reports.taps(attempt)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "m").write_text("".join(f"acc={n:03}\n" for n in range(1000)))
    attempt.exit = Exit(code=0)
    reports.last(attempt)
    assert outbox.values(facts.FinalReported) == ["999.0"]
    assert len(outbox.values(facts.MetricReported)) < 200
    assert "bytes of its file of metrics are passed over" in attempt.remark


def test_an_attempt_that_never_began_leaves_nothing(outbox: Outbox, attempt: Attempt) -> None:
    reports = program_reports(outbox, PRINTED)
    reports.taps(attempt)
    reports.forget(attempt)
    attempt.exit = Exit(code=0)
    reports.last(attempt)
    reports.forget(attempt)
    assert outbox.facts == []
