"""``bequeath tuner replay``: the tuner as it is now against what was proposed then."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dispatcher.cli.main import PROGRAM, app
from dispatcher.errors import TunerCodeError
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiments.creating import create
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.tuner_host.config import TunerHostConfig
from dispatcher.tuner_tools.rehearsal import RehearsalPlan, rehearse
from dispatcher.tuner_tools.replay import rerun
from dispatcher.wiring.tuner_host import tuner_host_config
from trial_runtime.endpoint import Endpoint

TUNER = """
from tuners import Tuner

class Climbing(Tuner):
    def __init__(self):
        self.best = (-1.0, None)

    def generate_parameters(self, parameter_id):
        if parameter_id > 3:
            self.wait_for(parameter_id - 4, fallback=None)
        return {"i": parameter_id, "step": STEP, "save_path": self.save_path(parameter_id)}

    def receive_trial_result(self, parameter_id, parameters, value):
        with self.lock:
            self.best = max(self.best, (value, parameter_id))
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(TUNER.replace("STEP", "1"))
    config = build_experiment(
        {
            "experimentName": "climb",
            "experimentWorkingDirectory": str(tmp_path / "kept"),
            "tuner": {"className": "mine:Climbing", "codeDirectory": str(tmp_path)},
            "trialCommand": "true",
            "trialCodeDirectory": str(tmp_path),
            "trialConcurrency": 4,
        }
    )
    home = ExperimentFolder(create(config))
    stage = tmp_path / "stage"
    stage.mkdir()
    told = tuner_host_config(config, home, Endpoint(""), 0)
    rehearse(told, RehearsalPlan(trials=40, slots=4, lookahead=16), folder=stage)
    shutil.copy(stage / "journal.sqlite", home.journal)
    return home.path


def replay(experiment: Path, *words: str) -> tuple[int, dict[str, object]]:
    command = ["tuner", "replay", str(experiment), "--json", *words]
    done = CliRunner().invoke(app, command, prog_name=PROGRAM)
    return done.exit_code, json.loads(done.output)


def test_the_same_code_answers_the_same(experiment: Path) -> None:
    before = (experiment / "journal.sqlite").read_bytes()
    code, seen = replay(experiment)
    assert code == 0
    assert (seen["requests"], seen["ends"]) == (40, 40)
    assert 20 < seen["results"] < 40  # type: ignore[operator]  # some have failed
    assert seen["differences"] == []
    assert seen["notes"] == []
    assert (experiment / "journal.sqlite").read_bytes() == before


def test_edited_code_shows_what_it_would_have_done(experiment: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(TUNER.replace("STEP", "1 if parameter_id != 7 else 2"))
    sys.modules.pop("mine", None)
    # Trial 23 was asked for after 7 had ended, and 27 after 23: of the others nobody knows.
    code, seen = replay(experiment, "--until", "23")
    assert code == 1
    (only,) = seen["differences"]  # type: ignore[misc]
    assert only["trial"] == 7
    assert json.loads(only["then"])["step"] == 1
    assert json.loads(only["now"])["step"] == 2
    assert 6 <= seen["requests"] < 40  # type: ignore[operator]


def test_a_trial_that_never_was_is_named(experiment: Path) -> None:
    words = ["tuner", "replay", str(experiment), "--until", "77"]
    done = CliRunner().invoke(app, words, prog_name=PROGRAM)
    assert done.exit_code == 3
    assert "trial 77 was never proposed" in done.output


BY_CALLBACK = """
    from nni.tuner import Tuner

    class T(Tuner):
        def __init__(self):
            self.seen = []
        def update_search_space(self, search_space):
            pass
        def generate_parameters(self, parameter_id, st_callback, **kwargs):
            st_callback(parameter_id, {"seen": list(self.seen)})
            raise nni.NoMoreTrialError("it has been sent")
        def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
            self.seen.append(value)
"""

ADVISOR = """
    import json
    import threading
    from nni.runtime.msg_dispatcher_base import MsgDispatcherBase
    from nni.runtime.protocol import CommandType, send

    class T(MsgDispatcherBase):
        def __init__(self):
            super().__init__()
            self.sent, self.owner = 0, threading.get_ident()
        def handle_initialize(self, data):
            send(CommandType.Initialized, "")
        def handle_request_trial_jobs(self, data):
            assert threading.get_ident() == self.owner, "advisors know one thread"
            self.sent += 1
            told = {"parameter_id": self.sent, "parameters": {"n": self.sent}}
            send(CommandType.NewTrialJob, json.dumps(told))
        def handle_trial_end(self, data):
            pass
        def handle_report_metric_data(self, data):
            pass
"""


@pytest.mark.parametrize(
    "code, answers",
    [
        (BY_CALLBACK, [[0, {"seen": []}], [1, {"seen": []}], 0, [2, {"seen": [0.5]}]]),
        (ADVISOR, [[0, {"n": 1}], [1, {"n": 2}], 0, 1, [2, {"n": 3}]]),
    ],
)
def test_code_written_for_nni_finds_what_it_found_in_the_experiment(
    tmp_path: Path, code: str, answers: list[Any]
) -> None:
    """Its modules, callbacks, and one thread for an advisor."""
    (tmp_path / "replayed_for_nni.py").write_text("import nni\n" + textwrap.dedent(code))
    calls: list[list[Any]] = []
    for answer in answers:
        if isinstance(answer, int):
            calls += [["result", answer, "{}", "0.5"], ["end", answer, True, True]]
        else:
            calls.append(["generate", answer[0], json.dumps(answer[1])])
    config = TunerHostConfig(
        endpoint=Endpoint(""),
        weights_root=str(tmp_path),
        class_name="replayed_for_nni:T",
        code_directory=str(tmp_path),
        adapter="dispatcher.nni.tuner.adapter:ADAPTER",
    )
    notes: list[str] = []
    sys.modules.pop("replayed_for_nni", None)
    assert rerun(config, None, calls, notes.append, 60.0) == []
    assert notes == []


def test_a_tuner_that_holds_versions_is_repeated_in_the_order_of_then(tmp_path: Path) -> None:
    """What it says in passing is no answer: the next request does not begin before that."""
    (tmp_path / "holding.py").write_text(
        textwrap.dedent("""
            import time
            from tuners import Tuner

            class T(Tuner):
                def __init__(self): self.order = []
                def generate_parameters(self, parameter_id):
                    if not parameter_id:
                        self.shared_store("omega").hold(1)
                        time.sleep(0.2)  # the others would be faster
                    self.order.append(parameter_id)
                    return {"order": list(self.order)}
        """)
    )
    calls = [
        ["generate", trial, json.dumps({"order": list(range(trial + 1))})] for trial in range(3)
    ]
    config = TunerHostConfig(
        endpoint=Endpoint(""),
        weights_root=str(tmp_path),
        class_name="holding:T",
        code_directory=str(tmp_path),
    )
    notes: list[str] = []
    assert rerun(config, None, calls, notes.append, 60.0) == []


@pytest.mark.parametrize("where", ["update_search_space", "restore"])
def test_an_error_of_the_tuner_shows_its_own_lines_only(tmp_path: Path, where: str) -> None:
    (tmp_path / "failing_again.py").write_text(
        textwrap.dedent(f"""
            from tuners import Tuner

            class T(Tuner):
                def {where}(self, *given):
                    raise OverflowError("by itself")
        """)
    )
    config = TunerHostConfig(
        endpoint=Endpoint(""),
        weights_root=str(tmp_path),
        class_name="failing_again:T",
        code_directory=str(tmp_path),
    )
    sys.modules.pop("failing_again", None)
    with pytest.raises(TunerCodeError) as caught:
        rerun(config, "{}", [], [].append, 60.0)
    assert "OverflowError: by itself" in caught.value.message
    assert caught.value.message.count('File "') == 1


def test_needs_stand_under_the_key_that_the_experiment_names(tmp_path: Path) -> None:
    """The journal has the parameters without them."""
    (tmp_path / "needing.py").write_text(
        textwrap.dedent("""
            from tuners import Tuner, with_needs

            class T(Tuner):
                def generate_parameters(self, parameter_id):
                    return with_needs({"i": parameter_id}, cpus=2, key="wants")
        """)
    )
    config = TunerHostConfig(
        endpoint=Endpoint(""),
        weights_root=str(tmp_path),
        class_name="needing:T",
        code_directory=str(tmp_path),
        needs_key="wants",
    )
    notes: list[str] = []
    assert rerun(config, None, [["generate", 0, '{"i": 0}']], notes.append, 60.0) == []
    assert notes == []


@pytest.mark.parametrize("wait", ["self.wait_for(99)", "threading.Event().wait()"])
def test_a_tuner_that_waits_otherwise_than_then_is_not_waited_for_at_each_request(
    tmp_path: Path, wait: str
) -> None:
    """No end can come while its answer is awaited. Waited out, this would take half a day."""
    (tmp_path / "waiting.py").write_text(
        textwrap.dedent(f"""
            import threading
            from tuners import Tuner

            class T(Tuner):
                def generate_parameters(self, parameter_id):
                    {wait}
                    return {{}}
                def receive_trial_result(self, parameter_id, parameters, value):
                    pass
        """)
    )
    calls: list[list[Any]] = []
    for trial in range(12):
        calls += [
            ["generate", trial, "{}"],
            ["result", trial, "{}", "1"],
            ["end", trial, True, True],
        ]
    config = TunerHostConfig(
        endpoint=Endpoint(""),
        weights_root=str(tmp_path),
        class_name="waiting:T",
        code_directory=str(tmp_path),
    )
    sys.modules.pop("waiting", None)
    notes: list[str] = []
    differing = rerun(config, None, calls, notes.append, 3600.0)
    assert [one.trial for one in differing] == list(range(12))
    assert all(one.now.endswith("which it did not then") for one in differing)
    assert notes == []


@pytest.mark.parametrize(
    "answer",
    [
        "self.pool.submit(time.sleep, 2.5).result()",
        "threading.Event().wait(2.5)",
        "self.until(2.5)",
    ],
    ids=["a thread of its own", "a wait with a time limit", "wait_for with a time limit"],
)
def test_an_answer_that_comes_by_itself_is_awaited(tmp_path: Path, answer: str) -> None:
    """Given up, the tuner would hear results of proposals that it has not made yet."""
    (tmp_path / "patient.py").write_text(
        textwrap.dedent(f"""
            import threading
            import time
            from concurrent.futures import ThreadPoolExecutor
            from tuners import Tuner, WaitTimeout

            class T(Tuner):
                def __init__(self):
                    self.pool = ThreadPoolExecutor(1)
                    self.proposed = {{}}
                def until(self, seconds):
                    try:
                        self.wait_for(99, timeout=seconds)
                    except WaitTimeout:
                        pass
                def generate_parameters(self, parameter_id):
                    if parameter_id == 0:
                        {answer}
                    self.proposed[parameter_id] = {{"x": parameter_id}}
                    return self.proposed[parameter_id]
                def receive_trial_result(self, parameter_id, parameters, value):
                    del self.proposed[parameter_id]
        """)
    )
    calls: list[list[Any]] = [["generate", 99, None]]
    for trial in range(3):
        parameters = f'{{"x": {trial}}}'
        calls += [
            ["generate", trial, parameters],
            ["result", trial, parameters, "1"],
            ["end", trial, True, True],
        ]
    config = TunerHostConfig(
        endpoint=Endpoint(""),
        weights_root=str(tmp_path),
        class_name="patient:T",
        code_directory=str(tmp_path),
    )
    sys.modules.pop("patient", None)
    notes: list[str] = []
    assert rerun(config, None, calls, notes.append, 60.0) == []
    assert notes == []
