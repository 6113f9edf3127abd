"""A tuner whose process is gone is rebuilt, and each result counts once."""

from __future__ import annotations

import json
from pathlib import Path

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.tuner_host import restore
from tests.integration.tuner_host.conftest import Make
from tests.integration.tuner_host.test_requests import source

COUNTER = source("""
    class T(Tuner):
        def __init__(self): self.taken = []
        def generate_parameters(self, parameter_id, **kwargs):
            if parameter_id == 3:
                self.wait_for(2)
            return {"id": parameter_id, "taken": list(self.taken)}
        def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
            self.taken.append([parameter_id, parameters["id"], value])
        def trial_end(self, parameter_id, success, **kwargs):
            self.taken.append([parameter_id, success])
    """)
STATE = """
    def state(self): return self.taken
    def restore(self, state): self.taken = state
"""


def past(folder: Path, state: str | None, calls: list[list[object]]) -> str:
    path = folder / "past.msgpack"
    restore.write(path, state, calls)
    return str(path)


def test_by_repeating_all_calls(make: Make, tmp_path: Path) -> None:
    calls = [
        ["generate", 0, '{"id":0,"taken":[]}'],
        ["result", 0, '{"id":0,"taken":[]}', "0.5"],
        ["end", 0, True, True],
        ["generate", 1, '{"id":1,"taken":[[0,0,0.5],[0,true]]}'],
        ["end", 1, False, False],
        ["generate", 2, '{"id":2,"different":true}'],
    ]
    head = make(COUNTER, restore=past(tmp_path, None, calls)).start()
    (note,) = head.notes
    assert "request 2" in note
    assert '"different":true' in note
    head.open(3, 4)
    taken = [[0, 0, 0.5], [0, True], [1, False]]
    assert json.loads(head.wait_for(e.Proposed, 4).parameters)["taken"] == taken
    head.wait_for(e.WaitStarted, 3)
    head.deliver(2, 0.25, parameters={"id": 2, "different": True})
    assert json.loads(head.wait_for(e.Proposed, 3).parameters)["taken"] == [
        *taken,
        [2, 2, 0.25],
        [2, True],
    ]


def test_results_come_with_what_their_trials_ran_with(make: Make, tmp_path: Path) -> None:
    """A tuner that answers otherwise when it is asked again must not learn that something scored
    which never ran. Mutation: what the replay answered stands."""
    tuner = source("""
        class T(Tuner):
            def __init__(self): self.taken = []
            def generate_parameters(self, parameter_id, **kwargs):
                return {"drawn": "again", "taken": list(self.taken)}
            def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
                self.taken.append([parameter_id, parameters["drawn"], value])
        """)
    calls = [
        ["generate", 0, '{"drawn":"first"}'],
        ["generate", 1, '{"drawn":"first"}'],
        ["result", 0, '{"drawn":"first"}', "0.5"],
        ["end", 0, True, True],
        ["generate", 2, '{"drawn":"first"}'],
    ]
    head = make(tuner, restore=past(tmp_path, None, calls)).start()
    for trial in (1, 2):
        head.deliver(trial, 0.25, parameters={"drawn": "first"})
        head.wait_for(e.EndDelivered, trial)
    head.open(3)
    answer = json.loads(head.wait_for(e.Proposed, 3).parameters)
    assert answer["taken"] == [[0, "first", 0.5], [1, "first", 0.25], [2, "first", 0.25]]


def test_repeated_waits_end_at_repeated_ends(make: Make, tmp_path: Path) -> None:
    tuner = source("""
        class T(Tuner):
            def __init__(self):
                self.events = {i: threading.Event() for i in range(4)}
            def generate_parameters(self, parameter_id, **kwargs):
                if parameter_id == 1: self.wait_for(0)
                if parameter_id == 3: self.events[2].wait()
                return {"id": parameter_id}
            def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
                self.events[parameter_id].set()
                print("result", parameter_id, flush=True)
        """)
    calls = [
        ["generate", 3, '{"id":3}'],
        ["generate", 1, '{"id":1}'],
        ["generate", 0, '{"id":0}'],
        ["generate", 2, '{"id":2}'],
        ["result", 2, '{"id":2}', "2"],
        ["end", 2, True, True],
        ["result", 0, '{"id":0}', "0"],
        ["end", 0, True, True],
        ["result", 1, '{"id":1}', "1"],
        ["result", 3, '{"id":3}', "3"],
    ]
    head = make(tuner, restore=past(tmp_path, None, calls)).start()
    assert not head.notes
    assert not head.events  # nothing of it was told to the head
    assert head.log().split() == ["result", "2", "result", "0", "result", "1", "result", "3"]


IMPORTING = """
    def import_data(self, data): self.taken.append(["imported", *[d["value"] for d in data]])
"""


def test_what_was_imported_is_told_again_in_its_place(make: Make, tmp_path: Path) -> None:
    calls = [
        ["generate", 0, '{"id":0,"taken":[]}'],
        ["import", 0, '[{"parameter":{},"value":3}]'],
        ["end", 0, True, True],
    ]
    head = make(COUNTER + IMPORTING, restore=past(tmp_path, None, calls)).start()
    head.do(a.TellImport(1, '[{"parameter":{},"value":4},{"parameter":{},"value":5}]'))
    assert head.wait_for(e.ImportDelivered) == e.ImportDelivered(1)
    head.open(1)
    taken = [["imported", 3], [0, True], ["imported", 4, 5]]
    assert json.loads(head.wait_for(e.Proposed, 1).parameters)["taken"] == taken
    assert not head.notes


def test_a_tuner_that_takes_no_imports_or_fails_says_so(make: Make) -> None:
    head = make(COUNTER).start()
    head.do(a.TellImport(0, '[{"parameter":{},"value":3}]'))
    assert head.wait_for(e.ImportDelivered) == e.ImportDelivered(0)
    (said,) = head.notes  # on its way before the end was told
    assert "what was imported is ignored" in said
    failing = COUNTER + IMPORTING.replace('d["value"]', 'd["nothing"]')
    head = make(failing).start()
    head.do(a.TellImport(0, '[{"parameter":{},"value":3}]'))
    assert "KeyError: 'nothing'" in head.wait_for(e.ImportDelivered).error


def test_from_its_own_state(make: Make, tmp_path: Path) -> None:
    calls = [
        ["generate", 7, '{"id":7}'],
        ["result", 7, '{"id":7}', "0.5"],
        ["end", 7, True, True],
    ]
    tuner = COUNTER + STATE
    head = make(tuner, restore=past(tmp_path, '[["kept"]]', calls)).start()
    head.open(8)
    answer = json.loads(head.wait_for(e.Proposed, 8).parameters)
    assert answer["taken"] == [["kept"], [7, 7, 0.5], [7, True]]


def test_a_tuner_that_counts_its_proposals_is_told_those_since_its_state(
    make: Make, tmp_path: Path
) -> None:
    calls = [
        ["generate", 7, '{"id":7}'],
        ["generate", 8, '{"id":8}'],
        ["result", 7, '{"id":7}', "0.5"],
    ]
    counting = """
    def restore_proposal(self, parameter_id, parameters):
        self.taken.append(["proposed", parameter_id, parameters])
"""
    head = make(COUNTER + STATE + counting, restore=past(tmp_path, "[]", calls)).start()
    head.open(9)
    answer = json.loads(head.wait_for(e.Proposed, 9).parameters)
    assert answer["taken"] == [
        ["proposed", 7, {"id": 7}],
        ["proposed", 8, {"id": 8}],
        [7, 7, 0.5],
    ]


def test_a_state_that_does_not_fit_is_fatal(make: Make, tmp_path: Path) -> None:
    broken = COUNTER + STATE.replace("self.taken = state", "raise KeyError('population')")
    lost = make(broken, restore=past(tmp_path, "[]", [])).launch().lost()
    assert lost.fatal
    assert "cannot be restored" in lost.reason
    assert "population" in lost.reason


def test_states_are_taken_at_rest_after_so_many_deliveries(make: Make) -> None:
    head = make(COUNTER + STATE, snapshot_every=2).start()
    head.open(0, 1, 2, 3)
    for trial in (0, 1, 2):
        head.wait_for(e.Proposed, trial)
    for trial in (0, 1):
        head.deliver(trial, trial, parameters={"id": trial})
    taken = head.wait_for(e.TunerStateTaken)
    assert json.loads(taken.state) == [[0, 0, 0], [0, True], [1, 1, 1], [1, True]]
    order = [type(one).__name__ for one in head.events]
    assert order.index("EndDelivered") < len(order)
    head.deliver(2, parameters={"id": 2})
    head.wait_for(e.Proposed, 3)  # requests go on after the pause


def test_no_state_is_taken_while_a_request_is_on_its_way(make: Make) -> None:
    tuner = COUNTER.replace("return {", "parameter_id == 9 and threading.Event().wait(); return {")
    head = make(tuner + STATE, snapshot_every=1).start()
    head.open(9)
    head.wait_for(e.ForeignWaitSeen, 9)
    head.deliver(0, parameters={"id": 0})
    head.wait_for(e.EndDelivered, 0)
    head.deliver(1, parameters={"id": 1})
    head.wait_for(e.EndDelivered, 1)
    assert not [one for one in head.events if isinstance(one, e.TunerStateTaken)]


def test_a_state_that_is_not_json_is_told_once(make: Make) -> None:
    tuner = COUNTER + STATE.replace("return self.taken", "return {1, 2}")
    head = make(tuner, snapshot_every=1).start()
    for trial in (0, 1):
        head.deliver(trial, parameters={"id": trial})
        head.wait_for(e.EndDelivered, trial)
    (note,) = head.notes
    assert "set is not JSON serializable" in note


def test_waits_for_requests_that_ended_without_a_trial_end_again(
    make: Make, tmp_path: Path
) -> None:
    """At once, and what follows them in the author's code is done again."""
    tuner = source("""
        from tuners import ParentFailed
        class T(Tuner):
            def __init__(self): self.done = []
            def generate_parameters(self, parameter_id, **kwargs):
                if parameter_id == 0: raise ValueError("no")
                try: self.wait_for(0)
                except ParentFailed as error: self.done.append([parameter_id, error.reason])
                return {"done": list(self.done)}
            def receive_trial_result(self, parameter_id, parameters, value, **kwargs): pass
        """)
    calls: list[list[object]] = [["gate", 0, "no trial", []]]
    done: list[list[object]] = []
    for number in range(1, 4):
        done.append([number, "no trial"])
        parameters = json.dumps({"done": done})
        calls += [["generate", number, parameters], ["result", number, parameters, "1"]]
        calls += [["end", number, True, True]]
    head = make(tuner, restore=past(tmp_path, None, calls)).start()
    assert not head.notes
    head.open(4)
    assert json.loads(head.wait_for(e.Proposed, 4).parameters)["done"][:3] == done


def test_waits_that_the_head_refused_are_refused_again(make: Make, tmp_path: Path) -> None:
    """At once, and what follows them in the author's code is done again; also of a request that
    waits for a parent first. Mutation: they stand until their call is given up, 30 s each."""
    tuner = source("""
        from tuners import CycleRefused, UnknownParent
        class T(Tuner):
            def __init__(self): self.done = []
            def generate_parameters(self, parameter_id, **kwargs):
                try:
                    if parameter_id == 1: self.wait_for(0)
                    self.wait_for(99)
                except UnknownParent as error: self.done.append([parameter_id, error.parent])
                try: self.wait_for(98, 97, mode="any")
                except CycleRefused as error: self.done.append(list(error.cycle))
                return {"done": list(self.done)}
            def receive_trial_result(self, parameter_id, parameters, value, **kwargs): pass
        """)

    def refused(number: int) -> list[list[object]]:
        cycle = [number, 98, number]
        return [
            ["refused", number, [99], "all", "", 0, "unknown", 99, "", []],
            ["refused", number, [98, 97], "any", "", 0, "cycle", None, "", cycle],
        ]

    first = json.dumps({"done": [[0, 99], [0, 98]]})
    second = json.dumps({"done": [[0, 99], [0, 98], [1, 99], [1, 98]]})
    calls: list[list[object]] = [
        *refused(0),
        ["generate", 0, first],
        *refused(1),
        ["generate", 1, second],
        ["result", 0, first, "1"],
        ["end", 0, True, True],
        ["result", 1, second, "1"],
        ["end", 1, True, True],
    ]
    head = make(tuner, restore=past(tmp_path, None, calls)).start()
    assert not head.notes
