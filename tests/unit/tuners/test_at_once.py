"""64 requests at once from threads that lose the interpreter after every few bytecodes."""

from __future__ import annotations

import json
import random
import sys
import threading
from collections.abc import Iterator

import pytest

from tests.unit.tuners.test_storm import CASES, make
from tuners import NoMoreTrialError, ParentFailed
from tuners.testing import ScriptedGate, with_gate

REQUESTS = 64
PATIENCE_S = 120.0


@pytest.fixture
def racing() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class Rush:
    """All requests begin together; trials end, in any order, as soon as they are proposed."""

    def __init__(self, tuner, seed: int) -> None:
        self.gate = ScriptedGate(PATIENCE_S)
        self.tuner = with_gate(tuner, self.gate)
        self.changed = threading.Condition()
        self.dice = random.Random(seed)
        self.begin = threading.Barrier(REQUESTS)
        self.answers: dict[int, object] = {}
        self.errors: list[BaseException] = []
        self.threads = [threading.Thread(target=self.request, args=(n,)) for n in range(REQUESTS)]

    def request(self, number: int) -> None:
        self.begin.wait(PATIENCE_S)
        try:
            answer: object = json.loads(json.dumps(self.tuner.generate_parameters(number)))
        except (NoMoreTrialError, ParentFailed):
            answer = None
        except BaseException as error:  # noqa: BLE001 - the top of a thread
            self.errors.append(error)
            answer = None
        with self.changed:
            self.answers[number] = answer
            self.changed.notify_all()

    def run(self) -> dict[int, object]:
        for thread in self.threads:
            thread.start()
        while len(self.over()) < REQUESTS:
            with self.changed:
                assert self.changed.wait_for(self.ended, PATIENCE_S), "nobody answers"
                number = self.dice.choice(sorted(self.ended()))
            self.end(number, self.answers[number])
        for thread in self.threads:
            thread.join(PATIENCE_S)
        assert self.errors == []
        return self.answers

    def ended(self) -> set[int]:
        return self.answers.keys() - self.over()

    def over(self) -> set[int]:
        return self.gate.ended | self.gate.failed.keys()

    def end(self, number: int, parameters: object) -> None:
        well = parameters is not None and self.dice.random() > 0.1
        if well:
            self.tuner.receive_trial_result(number, parameters, self.dice.random())
        if parameters is not None:
            self.tuner.trial_end(number, well)
        if well:
            self.gate.open(number)
        else:
            self.gate.fail(number)


@pytest.mark.usefixtures("racing")
@pytest.mark.parametrize("case", CASES)
def test_sixty_four_at_once(case: str) -> None:
    tuner = make(case)
    rush = Rush(tuner, seed=1)
    answers = {n: one for n, one in rush.run().items() if one is not None}
    assert len(answers) > 40
    paths = [one["save_path"] for one in answers.values() if "save_path" in one]
    assert paths == [f"trials/{number}" for number, one in answers.items() if "save_path" in one]
    for one in answers.values():
        parent = one.get("restore_path")
        assert parent is None or int(parent.removeprefix("trials/")) in rush.gate.ended
    if case == "GridSearch":
        assert len({json.dumps(one, sort_keys=True) for one in answers.values()}) == len(answers)
    state = tuner.state()
    json.dumps(state)
    if case == "RegularizedEvolution":
        assert state["pending"] == []
