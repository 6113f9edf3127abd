"""Advisors as people wrote them for NNI, in the tuner host."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.events import RequestEnd
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason
from dispatcher.ports import AssessorInput
from dispatcher.tuner_host import restore
from dispatcher.tuner_host.config import AssessorSpec, TunerHostConfig
from dispatcher.tuner_tools.rehearsal import RehearsalPlan, rehearse
from dispatcher.tuner_tools.scripted import Script
from tests.integration.tuner_host.fake_head import FakeHead
from trial_runtime.endpoint import Endpoint

Make = Callable[..., FakeHead]

#: Two founders; then as many trials as results have come, two at once, under ids of its own.
WAVES = """
    import json_tricks
    from nni.msg_dispatcher_base import MsgDispatcherBase
    from nni.protocol import CommandType, send
    from nni.utils import MetricType

    class T(MsgDispatcherBase):
        def __init__(self, size=2):
            super(T, self).__init__()
            self.size, self.sent, self.credit, self.seen = size, 0, 0, []

        def handle_initialize(self, data):
            self.space = data
            self.seen.append("initialized")
            send(CommandType.Initialized, "")

        def handle_update_search_space(self, data):
            self.space = data

        def handle_request_trial_jobs(self, data):
            self.credit += data
            self.pay()

        def pay(self):
            while self.credit and self.size:
                self.credit, self.size = self.credit - 1, self.size - 1
                self.new(self.seen)

        def new(self, seen):
            self.sent += 1
            send(CommandType.NewTrialJob, json_tricks.dumps({
                "parameter_id": "wave_%d" % self.sent,
                "parameters": {"n": self.sent, "space": self.space, "seen": list(seen)},
                "parameter_source": "algorithm",
            }))

        def handle_report_metric_data(self, data):
            value = VALUE
            self.seen.append([data["parameter_id"], data["trial_job_id"], data["type"],
                              data["sequence"], value])
            if data["type"] == MetricType.PERIODICAL and value < 0:
                send(CommandType.KillTrialJob, json_tricks.dumps(data["trial_job_id"]))

        def handle_trial_end(self, data):
            own = json_tricks.loads(data["hyper_params"])
            self.seen.append([own["parameter_id"], own["parameters"]["n"], data["event"]])
            self.size += 1
            self.pay()

        def handle_import_data(self, data):
            pass

        def handle_add_customized_trial(self, data):
            pass
    """
#: How code of v1.4 and before, and how newer code comes to the value of a metric.
BEFORE, SINCE = "data['value']", "json_tricks.loads(data['value'])"


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """``make(source, **config)``: a head with the advisor class ``T``."""
    heads: list[FakeHead] = []

    def build(source: str, *, starts: bool = True, **config: Any) -> FakeHead:
        (tmp_path / "advisor.py").write_text(textwrap.dedent(source))
        config.setdefault("multi_thread", False)
        head = FakeHead(
            tmp_path / f"experiment{len(heads)}",
            class_name="T",
            file=str(tmp_path / "advisor.py"),
            adapter="dispatcher.nni.tuner.adapter:ADAPTER",
            save_key="",
            restore_key="",
            search_space='{"x": 1}',
            **config,
        )
        heads.append(head)
        return head.start() if starts else head.launch()

    yield build
    for head in heads:
        head.close()


def parameters(head: FakeHead, trial: int) -> Any:
    return json.loads(head.wait_for(e.Proposed, trial).parameters)


@pytest.mark.parametrize("value", [BEFORE, SINCE])
def test_it_is_told_all_that_nnis_manager_tells_under_its_own_ids(make: Make, value: str) -> None:
    # multiThread makes no difference: it is told one thing after another.
    head = make(WAVES.replace("VALUE", value), multi_thread=True)
    head.open(0, 1, 2)
    assert parameters(head, 0) == {"n": 1, "space": {"x": 1}, "seen": ["initialized"]}
    assert parameters(head, 1)["n"] == 2
    head.wait_for(e.ForeignWaitSeen, 2)  # no more than two at once: it waits, and holds no slot
    head.do(a.Assess(TrialId(1), "0.5"), a.Assess(TrialId(1), "-0.5"))
    assert head.wait_for(e.TrialStopRequested, 1).reason is EndReason.STOPPED_EARLY
    head.deliver(0, value=0.75)
    third = parameters(head, 2)  # the request that waited, answered after trial 0 had ended
    assert third["seen"] == [
        "initialized",
        ["wave_2", "1", "PERIODICAL", 0, 0.5],
        ["wave_2", "1", "PERIODICAL", 1, -0.5],
        ["wave_1", "0", "FINAL", 0, 0.75],
        ["wave_1", 1, "SUCCEEDED"],
    ]
    head.fail(1)
    head.open(3)
    assert parameters(head, 3)["seen"][5:] == [["wave_2", 2, "EARLY_STOPPED"]]
    head.fail(2)
    head.open(4)
    assert parameters(head, 4)["seen"][6:] == [["wave_3", 3, "FAILED"]]


def test_what_it_sends_unasked_answers_the_next_requests_in_order(make: Make) -> None:
    head = make("""
        import json
        import nni.protocol as protocol
        from nni.msg_dispatcher_base import MsgDispatcherBase

        class T(MsgDispatcherBase):
            asked = 0
            def handle_initialize(self, data):
                protocol.send(protocol.CommandType.Initialized, "")
                for n in range(3):
                    self.new(n)
            def handle_request_trial_jobs(self, data):
                self.asked += 1
                print("asked for", data)
                self.new("asked %d" % self.asked)
            def new(self, n):
                told = {"parameter_id": n, "parameters": {"n": n}}
                protocol.send(protocol.CommandType.NewTrialJob, json.dumps(told))
        """)
    head.open(0, 1, 2, 3, 4)
    assert [parameters(head, n)["n"] for n in range(5)] == [0, 1, 2, "asked 1", "asked 2"]
    assert head.log().count("asked for 1") == 2  # not while something that it sent waits


def test_without_a_trial_that_could_make_it_send_a_request_is_not_now(make: Make) -> None:
    source = WAVES.replace("VALUE", BEFORE).replace("self.size += 1", "self.size += self.sent < 2")
    head = make(source, class_args={"size": 1})
    head.open(0, 1)
    assert parameters(head, 0)["n"] == 1
    head.wait_for(e.ForeignWaitSeen, 1)
    head.deliver(0)
    assert parameters(head, 1)["n"] == 2
    head.open(2)
    head.wait_for(e.ForeignWaitSeen, 2)
    head.deliver(1)
    assert head.wait_for(e.RequestFailed, 2).kind is RequestEnd.NOT_NOW


def test_it_is_rebuilt_by_repeating_what_it_was_told(make: Make, tmp_path: Path) -> None:
    past = tmp_path / "past"
    first = json.dumps({"n": 1, "space": {"x": 1}, "seen": ["initialized"]})
    second = json.dumps({"n": 2, "space": {"x": 1}, "seen": ["initialized"]})
    calls = [
        ["generate", 0, first],
        ["generate", 1, second],
        ["generate", 2, None],
        ["result", 0, first, "0.75"],
        ["end", 0, True, True],
    ]
    restore.write(past, None, calls)
    head = make(WAVES.replace("VALUE", BEFORE), restore=str(past))
    head.deliver(1, value=0.5)
    head.open(2, 3)  # 2 had no answer yet: what was sent for it is kept
    told = [["wave_1", "0", "FINAL", 0, 0.75], ["wave_1", 1, "SUCCEEDED"]]
    assert parameters(head, 2) == {"n": 3, "space": {"x": 1}, "seen": ["initialized", *told]}
    told += [["wave_2", "1", "FINAL", 0, 0.5], ["wave_2", 2, "SUCCEEDED"]]
    assert parameters(head, 3) == {"n": 4, "space": {"x": 1}, "seen": ["initialized", *told]}


def test_results_of_another_experiment_go_to_whom_they_concern(make: Make) -> None:
    rows = '[{"parameter": {"n": 1}, "value": 0.5}]'
    head = make(WAVES.replace("VALUE", BEFORE).replace("pass", "self.seen.append(data)"))
    head.do(a.TellImport(0, rows))
    assert not head.wait_for(e.ImportDelivered).error
    head.open(0)
    assert parameters(head, 0)["seen"] == ["initialized", json.loads(rows)]
    deaf = make(WAVES.replace("VALUE", BEFORE).replace("def handle_import_data", "def other"))
    deaf.do(a.TellImport(0, rows))
    assert not deaf.wait_for(e.ImportDelivered).error
    assert deaf.notes == ["T has no handle_import_data: nothing is imported"]


def test_an_assessor_beside_it_looks_on_as_well(make: Make, tmp_path: Path) -> None:
    (tmp_path / "stopper.py").write_text(
        "class Stopper:\n"
        "    def assess_trial(self, trial_job_id, trial_history):\n"
        "        return trial_history != [0.5, 0.25]\n"
    )
    spec = AssessorSpec(class_name="Stopper", file=str(tmp_path / "stopper.py"))
    head = make(WAVES.replace("VALUE", BEFORE), assessor=spec)
    head.open(0)
    parameters(head, 0)
    head.do(a.Assess(TrialId(0), "0.5", 1, 1), a.Assess(TrialId(0), "0.25", 1, 2))
    assert head.wait_for(e.TrialStopRequested, 0).reason is EndReason.STOPPED_EARLY
    head.deliver(0, value=1.0)
    head.open(1)
    kinds = [seen[2] for seen in parameters(head, 1)["seen"][1:4]]
    assert kinds == ["PERIODICAL", "PERIODICAL", "FINAL"]


def test_that_of_an_installed_nni_is_refused_with_what_to_do(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "installed" / "nni"
    real.mkdir(parents=True)
    (real / "__init__.py").touch()
    (real / "msg_dispatcher_base.py").write_text("class MsgDispatcherBase: pass")
    monkeypatch.setenv("PYTHONPATH", str(real.parent))
    source = """
        from nni.msg_dispatcher_base import MsgDispatcherBase

        class T(MsgDispatcherBase):
            def handle_request_trial_jobs(self, data):
                pass
        """
    lost = make(source, starts=False).lost()
    assert lost.fatal
    assert "T is an advisor, and the nni that it imports is the installed one" in lost.reason
    assert "environment without nni" in lost.reason


WRONG = {
    "send(CommandType.NewTrialJob, json.dumps({'lr': 1}))": "'parameter_id' and 'parameters'",
    "send(CommandType.NewTrialJob, 'lr=1')": "'parameter_id' and 'parameters'",
    "send(CommandType.SendTrialJobParameter, '{}')": "a trial gets its parameters once",
    "send(CommandType.Ping, '')": "Ping is no command that an advisor sends",
}


@pytest.mark.parametrize("line", WRONG)
def test_what_cannot_be_sent_is_said_where_it_is_sent(make: Make, line: str) -> None:
    head = make(f"""
        import json
        from nni.runtime.msg_dispatcher_base import MsgDispatcherBase
        from nni.runtime.protocol import CommandType, send

        class T(MsgDispatcherBase):
            def handle_initialize(self, data):
                pass
            def handle_request_trial_jobs(self, data):
                {line}
        """)
    head.open(0)
    failed = head.wait_for(e.RequestFailed, 0)
    assert failed.kind is RequestEnd.ERROR
    assert WRONG[line] in failed.text
    assert line in failed.text  # the author's own line


class Past:
    """What the head would lay down, and how often it was asked to."""

    def __init__(self, path: Path, shown: list[AssessorInput]) -> None:
        self.path = path
        self.asked = 0
        self._shown = shown

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)

    def write(self) -> None:
        self.asked += 1
        draft = self.path.with_name("draft")
        draft.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in self._shown))
        draft.replace(self.path)

    def check(self) -> None: ...

    def close(self) -> None: ...


def test_it_is_told_what_was_reported_where_it_belongs_and_once(make: Make, tmp_path: Path) -> None:
    first = json.dumps({"n": 1, "space": {"x": 1}, "seen": ["initialized"]})
    second = json.dumps({"n": 2, "space": {"x": 1}, "seen": ["initialized"]})
    calls = [
        ["generate", 0, first],
        ["generate", 1, second],
        ["result", 0, first, "0.75"],
        ["end", 0, True, True],
    ]
    restore.write(tmp_path / "past", None, calls)
    shown = [
        AssessorInput(0, "0.25", 1, 0),
        AssessorInput(1, "0.5", 1, 0),
        AssessorInput(0, None, success=True),
        AssessorInput(1, "0.625", 1, 1),
        AssessorInput(1, "-0.5", 1, 2, answered=False),  # while no process was there: it has to end
    ]
    past = Past(tmp_path / "shown", shown)
    head = make(WAVES.replace("VALUE", SINCE), restore=str(tmp_path / "past"), shown=past)
    assert head.wait_for(e.TrialStopRequested, 1).reason is EndReason.STOPPED_EARLY
    head.do(a.Assess(TrialId(1), "-0.5", 1, 2), a.Assess(TrialId(1), "0.875", 1, 3))
    head.open(2)
    assert parameters(head, 2)["seen"] == [
        "initialized",
        ["wave_1", "0", "PERIODICAL", 0, 0.25],
        ["wave_2", "1", "PERIODICAL", 0, 0.5],
        ["wave_1", "0", "FINAL", 0, 0.75],
        ["wave_1", 1, "SUCCEEDED"],
        ["wave_2", "1", "PERIODICAL", 1, 0.625],
        ["wave_2", "1", "PERIODICAL", 2, -0.5],
        ["wave_2", "1", "PERIODICAL", 3, 0.875],
    ]
    head.fail(1)
    head.open(3)
    assert parameters(head, 3)["seen"][8:] == [["wave_2", 2, "EARLY_STOPPED"]]
    assert past.asked == 1
    assert head.notes == []


def test_a_tuner_that_is_no_advisor_does_not_ask(make: Make, tmp_path: Path) -> None:
    past = Past(tmp_path / "shown", [])
    head = make(
        """
        from nni.tuner import Tuner

        class T(Tuner):
            def generate_parameters(self, parameter_id):
                return {"n": parameter_id}
            def receive_trial_result(self, parameter_id, parameters, value):
                pass
        """,
        shown=past,
    )
    head.open(0)
    assert parameters(head, 0) == {"n": 0}
    assert past.asked == 0
    assert not past.path.exists()


#: Sends a trial whenever one has ended, with all that it was told of that one.
WATCHING = """
    import json
    from nni.runtime.msg_dispatcher_base import MsgDispatcherBase
    from nni.runtime.protocol import CommandType, send

    class T(MsgDispatcherBase):
        def handle_initialize(self, data):
            self.sent, self.told, self.over = 0, {}, []

        def handle_request_trial_jobs(self, data):
            self.sent += 1
            send(CommandType.NewTrialJob, json.dumps({
                "parameter_id": self.sent, "parameters": {"n": self.sent, "over": self.over},
            }))

        def handle_report_metric_data(self, data):
            seen = self.told.setdefault(data["trial_job_id"], [])
            if data["type"] == "PERIODICAL":
                seen.append([data["sequence"], json.loads(data["value"])])

        def handle_trial_end(self, data):
            self.over.append(self.told.pop(data["trial_job_id"], []))
    """


def test_deaths_of_its_process_and_of_the_head_cost_it_no_metric(tmp_path: Path) -> None:
    (tmp_path / "advisor.py").write_text(textwrap.dedent(WATCHING))
    config = TunerHostConfig(
        endpoint=Endpoint(""),
        weights_root="",
        class_name="T",
        file=str(tmp_path / "advisor.py"),
        adapter="dispatcher.nni.tuner.adapter:ADAPTER",
    )
    values = tuple(f"0.{step}" for step in range(1, 31))
    plan = RehearsalPlan(trials=9, slots=2, lookahead=1, kill_tuner_at=2, kill_head_at=4)
    seen = rehearse(config, plan, script=lambda _: Script(ticks=40, metrics=values, final="1.0"))
    launches = [row for row in seen.rows if isinstance(row.event, e.TunerHostReady)]
    assert len(launches) >= 2, seen.stuck
    told = [row.event.parameters for row in seen.rows if isinstance(row.event, e.Proposed)]
    whole = [[step, float(value)] for step, value in enumerate(values)]
    over = json.loads(told[-1])["over"]
    assert len(told) == 9
    assert len(over) >= 3, "of trials before the deaths, and after them"
    assert over == [whole] * len(over)
    assert seen.notes == []
