"""Tuners that count on how NNI asks: for a trial when one is over, and never for more."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dispatcher.core.model import Phase
from dispatcher.experiment import load_experiment
from dispatcher.experiments.creating import create
from dispatcher.head.head import Head
from dispatcher.notices import Notice, NoticeKind
from tests.support.processes import end_processes_of

FILE = """\
authorName: somebody
experimentName: asking
trialConcurrency: 2
maxTrialNum: 6
trainingServicePlatform: local
useAnnotation: false
multiThread: true
{more}tuner:
  codeDir: .
  classFileName: asked.py
  className: Asked
trial:
  command: python3 trial.py
  codeDir: .
"""

FOLDERS = """
    import threading
    from nni.tuner import Tuner

    class Asked(Tuner):
        '''One folder more than trials at once; a child waits for the request before its own.'''

        def __init__(self):
            self.mutex = threading.Lock()
            self.free = ["a", "b", "c"]
            self.used = {}
            self.over = [threading.Event() for _ in range(100)]

        def update_search_space(self, space):
            pass

        def generate_parameters(self, parameter_id, **kwargs):
            self.mutex.acquire()
            self.used[parameter_id] = self.free.pop()  # an IndexError would leave it locked
            self.mutex.release()
            if parameter_id >= 2:
                self.over[parameter_id - 1].wait()
            return {"folder": self.used[parameter_id]}

        def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
            with self.mutex:
                self.free.append(self.used.pop(parameter_id))
            self.over[parameter_id].set()
"""

GROUPS = """
    import threading
    from nni.tuner import Tuner

    class Asked(Tuner):
        '''Nobody is answered before a third has asked.'''

        def __init__(self):
            self.mutex = threading.Lock()
            self.asked = 0
            self.enough = threading.Event()

        def update_search_space(self, space):
            pass

        def generate_parameters(self, parameter_id, **kwargs):
            with self.mutex:
                self.asked += 1
                if self.asked == 3:
                    self.enough.set()
            self.enough.wait()
            return {"folder": "a"}

        def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
            pass
"""

TRIAL = """
    import time
    import nni
    if nni.get_next_parameter()["folder"] == "b":
        time.sleep(1.5)  # its children wait meanwhile
    nni.report_final_result(1.0)
"""

Run = Callable[..., tuple[Phase, list[Notice]]]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    folders: list[Path] = []

    def to_the_end(tuner: str, more: str = "") -> tuple[Phase, list[Notice]]:
        (tmp_path / "asking.yml").write_text(FILE.format(more=more))
        (tmp_path / "asked.py").write_text(textwrap.dedent(tuner))
        (tmp_path / "trial.py").write_text(textwrap.dedent(TRIAL))
        config = load_experiment(tmp_path / "asking.yml")
        kept = {"experiment_working_directory": tmp_path / "kept"}
        folder = create(config.model_copy(update=kept))
        folders.append(folder)
        notices: list[Notice] = []
        return Head(folder, on_notice=notices.append).run(), notices

    yield to_the_end
    for folder in folders:
        end_processes_of(folder)


def kinds(notices: list[Notice]) -> set[NoticeKind]:
    return {one.kind for one in notices}


def test_a_tuner_that_lends_a_folder_to_each_request_has_enough_of_them(run: Run) -> None:
    phase, notices = run(FOLDERS)
    assert phase is Phase.COMPLETED
    assert NoticeKind.TUNER_ERROR not in kinds(notices)


def test_a_file_that_says_lookahead_is_asked_ahead(run: Run) -> None:
    phase, notices = run(GROUPS, "lookahead: 4\n")
    assert phase is Phase.COMPLETED
    assert NoticeKind.TUNER_NOTE not in kinds(notices)


def test_where_nni_would_wait_for_ever_more_is_asked_for_and_said(run: Run) -> None:
    phase, notices = run(GROUPS)
    assert phase is Phase.COMPLETED
    (note,) = [one.text for one in notices if one.kind is NoticeKind.TUNER_NOTE]
    assert "all 2 requests that NNI would ask for wait" in note
    assert "2 requests stand in" in note
    assert "no wait_for" in note
