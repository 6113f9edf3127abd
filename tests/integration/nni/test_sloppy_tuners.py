"""Tuners as people wrote them for NNI, in the tuner host."""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.core import events as e
from dispatcher.core.events import RequestEnd
from dispatcher.tuner_host import restore
from dispatcher.tuner_host.config import AssessorSpec
from tests.integration.tuner_host.fake_head import PATIENCE_S, FakeHead
from tests.unit.cli.conftest import Shell

Make = Callable[..., FakeHead]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """``make(source, **config)``: a head whose tuner class ``T``, written for NNI, is there."""
    heads: list[FakeHead] = []

    def build(source: str, **config: Any) -> FakeHead:
        code = tmp_path / "code"
        code.mkdir(exist_ok=True)
        (code / "my_tuner.py").write_text(textwrap.dedent(source))
        (code / "graph.py").write_text("import nni\nNAME = 'neighbour'\n")
        config.setdefault("multi_thread", False)
        head = FakeHead(
            tmp_path / f"experiment{len(heads)}",
            class_name="T",
            file=str(code / "my_tuner.py"),
            adapter="dispatcher.nni.tuner.adapter:ADAPTER",
            save_key="",
            restore_key="",
            **config,
        )
        heads.append(head)
        return head.start()

    yield build
    for head in heads:
        head.close()


def parameters(head: FakeHead, trial: int) -> Any:
    return json.loads(head.wait_for(e.Proposed, trial).parameters)


def test_no_constructor_called_few_arguments_a_neighbour_and_paths_of_its_own(make: Make) -> None:
    head = make("""
        import os
        from nni.tuner import Tuner
        from graph import NAME

        class T(Tuner):
            def __init__(self):
                self.seen = []
            def generate_parameters(self, parameter_id):
                return {"neighbour": NAME, "seen": self.seen, "save_path": "/mnt/nfs/nni",
                        "gpus": os.environ.get("CUDA_VISIBLE_DEVICES"),
                        "checkpoints": self.get_checkpoint_path() is not None}
            def receive_trial_result(self, parameter_id, parameters, reward):
                self.seen.append([reward, self.extract_scalar_reward({"default": 3})])
            def update_search_space(self, data):
                pass
        """)
    head.open(0)
    first = parameters(head, 0)
    assert first["neighbour"] == "neighbour"
    assert first["checkpoints"] is True
    assert first["save_path"] == "/mnt/nfs/nni"  # no confinement: nobody named a weights root
    head.deliver(0, value={"accuracy": [1, "text"]})
    head.wait_for(e.EndDelivered, 0)
    head.open(1)
    assert parameters(head, 1)["seen"] == [[{"accuracy": [1, "text"]}, 3]]


def test_a_request_that_polls_is_no_deadlock(make: Make) -> None:
    head = make(
        """
        from tests.support import hold
        import nni.tuner

        class T(nni.tuner.Tuner):
            results = {}
            def generate_parameters(self, parameter_id, trial_job_id=None):
                hold.until(lambda: not parameter_id or parameter_id - 1 in self.results)
                return {"id": parameter_id}
            def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
                assert kwargs["customized"] is False and kwargs["trial_job_id"] == str(parameter_id)
                self.results[parameter_id] = value
        """,
        multi_thread=True,
    )
    head.open(*range(24))  # more than any pool of as many threads as cores
    for trial in range(24):
        assert parameters(head, trial) == {"id": trial}
        head.deliver(trial)


REFUSING = """
    import nni
    from nni.tuner import Tuner

    class T(Tuner):
        calls = []
        kept = None
        def generate_parameters(self, parameter_id, **kwargs):
            self.calls.append(parameter_id)
            if parameter_id == 0:
                return {"calls": list(self.calls)}
            if %s:
                self.kept = kwargs["st_callback"]
            raise nni.NoMoreTrialError("later")
        def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
            if self.kept is not None:
                self.kept(1, {"calls": list(self.calls), "answer": 1})
                self.kept(1, {"answer": 2})
    """


def test_who_ignores_the_callback_is_asked_again(make: Make) -> None:
    head = make(REFUSING % "False")
    head.open(0, 1)
    head.wait_for(e.Proposed, 0)
    assert head.wait_for(e.RequestFailed, 1).kind is RequestEnd.NOT_NOW


def test_a_kept_callback_answers_and_its_first_answer_counts(make: Make) -> None:
    head = make(REFUSING % "True")
    head.open(0, 1)
    head.wait_for(e.Proposed, 0)
    head.wait_for(e.ForeignWaitSeen, 1)  # holds no slot, and is not asked again
    head.deliver(0)
    assert parameters(head, 1) == {"calls": [0, 1], "answer": 1}
    head.wait_for(e.EndDelivered, 0)
    assert not [one for one in head.events if isinstance(one, e.RequestFailed)]
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if any("st_callback(1, …) came to nothing" in note for note in head.notes):
            return
        head.poll()
    raise AssertionError(head.notes)


def test_nobody_waits_for_a_callback_that_nothing_can_bring(make: Make) -> None:
    head = make(REFUSING % "True")
    head.open(7)
    head.wait_for(e.ForeignWaitSeen, 7)
    assert head.wait_for(e.RequestFailed, 7).kind is RequestEnd.NOT_NOW
    # Asked again while the callback is kept, it is refused without troubling the tuner.
    head.open(7)
    again = head.wait_for(e.RequestFailed, 7)
    assert (again.kind, again.text) == (RequestEnd.CANCELLED, "its callback is still held")
    head.open(0)
    assert parameters(head, 0)["calls"] == [7, 0]


def test_several_at_once_and_none_now(make: Make) -> None:
    head = make("""
        from nni.tuner import Tuner

        class T(Tuner):
            def generate_multiple_parameters(self, parameter_id_list, **kwargs):
                self.send = kwargs["st_callback"]
                return [] if 1 in parameter_id_list else [{"ids": parameter_id_list}]
            def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
                pass
            def trial_end(self, parameter_id, success, **kwargs):
                self.send(1, {"ended": parameter_id, "success": success})
        """)
    head.open(0, 1)
    assert parameters(head, 0) == {"ids": [0]}
    head.deliver(0)
    assert parameters(head, 1) == {"ended": 0, "success": True}


def test_tuner_and_assessor_are_both_told_of_the_end(make: Make, tmp_path: Path) -> None:
    (tmp_path / "stopper.py").write_text(
        "from nni.assessor import Assessor, AssessResult\n"
        "class Stopper(Assessor):\n"
        "    def assess_trial(self, trial_job_id, trial_history):\n"
        "        return AssessResult.Good\n"
        "    def _on_exit(self):\n"
        "        print('the assessor is told')\n"
    )
    head = make(
        """
        from nni.tuner import Tuner

        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs):
                return {}
            def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
                pass
            def _on_exit(self):
                raise ValueError("the tuner is told")
        """,
        assessor=AssessorSpec(class_name="Stopper", file=str(tmp_path / "stopper.py")),
    )
    head.driver.close(PATIENCE_S)
    assert "the tuner is told" in head.log()
    assert "the assessor is told" in head.log()


def test_what_waits_for_its_callback_is_not_asked_again_after_a_restart(
    make: Make, tmp_path: Path
) -> None:
    restore.write(tmp_path / "past", None, [["generate", 0, '{"n": 0}'], ["generate", 1, None]])
    head = make(
        """
        import nni
        from nni.tuner import Tuner

        class T(Tuner):
            def __init__(self):
                self.owed = []
            def generate_parameters(self, parameter_id, **kwargs):
                print("asked for", parameter_id)
                if parameter_id == 0:
                    return {"n": 0}
                self.owed.append((parameter_id, kwargs["st_callback"]))
                raise nni.NoMoreTrialError("later")
            def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
                for n, (one, answer) in enumerate(self.owed):
                    answer(one, {"n": n + 10})
        """,
        restore=str(tmp_path / "past"),
    )
    head.open(1)
    head.wait_for(e.ForeignWaitSeen, 1)
    head.deliver(0, value=0.5, parameters={"n": 0})
    assert parameters(head, 1) == {"n": 10}
    head.wait_for(e.EndDelivered, 0)
    assert head.log().count("asked for 1") == 1
    assert not head.notes  # and its callback was called once


def test_tuner_check_gives_them_the_modules_that_they_import(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(
        textwrap.dedent("""
        import nni
        from nni.tuner import Tuner

        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs):
                return {"id": parameter_id, "save_path": "/mnt/nfs/theirs"}
            def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
                assert parameters["id"] == parameter_id
        """)
    )
    said = Shell()("tuner", "check", f"{tmp_path}/theirs.py:T", "--trials", "24")
    assert said.code == 0, said.out + said.err
