"""64 requests at once from threads that lose the interpreter after every few bytecodes."""

from __future__ import annotations

import json
import random
import sys
import threading
from collections.abc import Iterator

import pytest

from tests.unit.tuners.storm import StormGate
from tests.unit.tuners.test_storm import CASES, make
from tuners import NoMoreTrialError, ParentFailed

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
        self.tuner = tuner
        self.gate = StormGate()
        self.gate.asked.update(range(REQUESTS))
        tuner._bequeath_gate = self.gate
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
        with self.gate.changed:
            self.answers[number] = answer
            self.gate.changed.notify_all()

    def run(self) -> dict[int, object]:
        for thread in self.threads:
            thread.start()
        while len(self.gate.fates) < REQUESTS:
            with self.gate.changed:
                assert self.gate.changed.wait_for(self.ended, PATIENCE_S), "nobody answers"
                number = self.dice.choice(sorted(self.ended()))
            self.end(number, self.answers[number])
        for thread in self.threads:
            thread.join(PATIENCE_S)
        assert self.errors == []
        return self.answers

    def ended(self) -> set[int]:
        return self.answers.keys() - self.gate.fates.keys()

    def end(self, number: int, parameters: object) -> None:
        well = parameters is not None and self.dice.random() > 0.1
        if well:
            self.tuner.receive_trial_result(number, parameters, self.dice.random())
        if parameters is not None:
            self.tuner.trial_end(number, well)
        with self.gate.changed:
            self.gate.fates[number] = well
            self.gate.changed.notify_all()


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
        assert parent is None or rush.gate.fates[int(parent.removeprefix("trials/"))]
    if case == "GridSearch":
        assert len({json.dumps(one, sort_keys=True) for one in answers.values()}) == len(answers)
    json.dumps(tuner.state())
