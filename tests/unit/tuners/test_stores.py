"""What a tuner says and asks of shared stores."""

from __future__ import annotations

import pytest

from tuners import ParentFailed, Tuner, WaitNotAllowed
from tuners.errors import WaitWithLock
from tuners.stores import StoreView
from tuners.testing import OpenGate, with_gate


@pytest.fixture
def gate() -> OpenGate:
    return OpenGate(versions={"omega": 2})


@pytest.fixture
def tuner(gate: OpenGate) -> Tuner:
    return with_gate(Tuner(), gate)


def test_either_a_number_or_a_trial(tuner, gate):
    assert tuner.wait_for_version("omega", 3) == 3
    assert tuner.wait_for_version("omega", by=4, timeout=2) == 3
    assert gate.waited_for_versions == [("omega", 3, None), ("omega", 0, 4)]
    gate.failed[5] = "killed"
    assert tuner.wait_for_version("omega", by=5, fallback=None) is None
    with pytest.raises(ParentFailed, match="published no version"):
        tuner.wait_for_version("omega", by=5)


def test_the_gate_gets_the_timeout():
    class Recorder(OpenGate):
        def wait_for_version(self, store, number, by, timeout):
            self.asked = (store, number, by, timeout)
            return 7

    gate = Recorder()
    assert with_gate(Tuner(), gate).wait_for_version("omega", by=4, timeout=2) == 7
    assert gate.asked == ("omega", 0, 4, 2)


@pytest.mark.parametrize("named", [{}, {"number": 1, "by": 2}, {"number": 0}, {"number": -3}])
def test_what_names_no_version(tuner, named):
    with pytest.raises(ValueError, match="version"):
        tuner.wait_for_version("omega", **named)


def test_slips(tuner):
    with pytest.raises(TypeError, match="integers"):
        tuner.wait_for_version("omega", "3")
    with pytest.raises(ValueError, match="timeout"):
        tuner.wait_for_version("omega", 3, timeout=-1)
    with tuner.lock, pytest.raises(WaitWithLock):
        tuner.wait_for_version("omega", 3)
    with pytest.raises(WaitNotAllowed, match="not run by the dispatcher"):
        Tuner().wait_for_version("omega", 3)


def test_holding_names_all_of_a_store_and_leaves_stand_ins_alone(tuner, gate):
    store = tuner.shared_store("omega")
    store.hold(3, 1, 3, 0)
    assert gate.held == {"omega": (1, 3)}
    store.hold()
    assert gate.held == {"omega": ()}

    class Bare:
        def wait(self, parents, mode, timeout):
            return list(parents)

    with_gate(Tuner(), Bare()).shared_store("omega").hold(3)
    Tuner().shared_store("omega").hold(3)


def test_a_restore_path_is_a_name_of_a_version():
    store = StoreView("omega", {"omega": 3})
    assert (store.restore_path(), store.restore_path(2)) == (".stores/omega/3", ".stores/omega/2")
    with pytest.raises(ValueError, match="no version yet"):
        StoreView("omega", {}).restore_path()
