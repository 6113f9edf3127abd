"""Retention on a remote root: what kept weights refer to stays, records go before objects."""

from __future__ import annotations

import pytest

from dispatcher.errors import PassingBackendError
from dispatcher.weight_keeper import Keep, Policy, WeightKeeper
from tests.unit.weight_keeper.memory_ledger import LedgerRow, MemoryLedger
from tests.unit.weights.remote.conftest import Lab, assert_same, broken, state
from trial_runtime import failpoints
from trial_runtime.weights.remote import record as records
from trial_runtime.weights.remote.pushing import Pushed
from trial_runtime.weights.remote.storage import RemoteStorage


class Family:
    """Three generations, each with a tensor of its own; the newest is the best."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.ledger = MemoryLedger()
        self.pushed: dict[int, Pushed] = {}
        for trial in (1, 2, 3):
            parent = self.pushed.get(trial - 1)
            above = None if parent is None else (f"t/{trial - 1}", parent.published.digest)
            self.pushed[trial] = lab.trained(f"{trial}.1", self.state_of(trial), above)
            row = LedgerRow(
                trial, "ended", trial - 1 if parent else None, f"t/{trial}", float(trial)
            )
            row.asked_at, row.ended_at = 10.0 * trial, 10.0 * trial + 5
            row.weights_digest = self.digest(trial)
            self.ledger.rows[trial] = row

    @staticmethod
    def state_of(trial: int) -> dict[str, object]:
        return state(*range(1, trial))

    def digest(self, trial: int) -> str:
        return self.pushed[trial].published.digest

    def keeper(self) -> WeightKeeper:
        policy = Policy(Keep.BEST, 1)
        shelf = RemoteStorage(self.lab.place)
        return WeightKeeper(self.lab.folder, shelf, self.ledger, policy, clock=lambda: 5.0)


@pytest.fixture
def family(lab: Lab) -> Family:
    return Family(lab)


def test_objects_that_kept_weights_refer_to_stay(family: Family) -> None:
    lab = family.lab
    plan = family.keeper().sweep(lambda trials: trials)
    assert [one.trial for one in plan.doomed] == [1, 2]
    assert plan.shared
    assert all(users == ("t/3",) for users in plan.shared.values())
    assert lab.place.listing("published") == {
        records.record_name("t/3", family.digest(3)): lab.place.size(
            records.record_name("t/3", family.digest(3))
        )
    }
    needed = {file.name for file in family.pushed[3].record.files}
    assert set(lab.place.listing("objects")) == needed
    assert_same(lab.loaded("9.1", "t/3", family.digest(3)), family.state_of(3))


def test_records_go_before_objects_and_an_interruption_is_made_up_for(family: Family) -> None:
    lab = family.lab
    plan = "remote.file.removed@3=raise:EIO"
    with failpoints.planned(plan), pytest.raises(PassingBackendError):
        family.keeper().sweep(lambda trials: trials)
    assert len(lab.place.listing("published")) == 1
    assert any(row.removed_at is None for row in family.ledger.removals())
    assert family.keeper().finish_removals() == 2
    assert set(lab.place.listing("objects")) == {f.name for f in family.pushed[3].record.files}


def test_a_sweep_frees_what_it_says(family: Family) -> None:
    lab = family.lab
    before = sum(lab.place.listing("objects").values()) + sum(
        lab.place.listing("published").values()
    )
    plan = family.keeper().sweep(lambda trials: trials)
    after = sum(lab.place.listing("objects").values()) + sum(
        lab.place.listing("published").values()
    )
    assert plan.nbytes == sum(one.nbytes for one in plan.doomed) == before - after


@pytest.mark.parametrize("spoilt", [None, b"{}"], ids=["missing", "damaged"])
def test_a_kept_record_in_doubt_keeps_all_that_it_could_refer_to(
    family: Family, spoilt: bytes | None
) -> None:
    """And nothing that is newer."""
    lab = family.lab
    newer = LedgerRow(4, "ended", None, "t/4", -1.0, asked_at=40.0, ended_at=45.0)
    newer.weights_digest = lab.trained("4.1", state(0)).published.digest
    family.ledger.rows[4] = newer
    record = records.record_name("t/3", family.digest(3))
    committed = lab.place.read(record, records.MAX_RECORD_BYTES)
    assert committed is not None
    if spoilt is None:
        lab.place.remove(record)
    else:
        lab.place.put_bytes(spoilt, record)
    swept = family.keeper().sweep(lambda trials: trials)
    assert [one.trial for one in swept.doomed] == [4]
    assert list(swept.doubtful) == [3]
    lab.place.put_bytes(committed, record)
    assert_same(lab.loaded("9.1", "t/3", family.digest(3)), family.state_of(3))


def test_a_server_that_is_away_stops_the_sweep(family: Family) -> None:
    family.lab.fs.plan["ls"] = family.lab.fs.plan["find"] = [broken] * 10
    with pytest.raises(PassingBackendError, match="nothing was removed"):
        family.keeper().sweep(lambda trials: trials)


def test_what_has_gone_is_not_asked_for_again(family: Family) -> None:
    keeper = family.keeper()
    keeper.sweep(lambda trials: trials)
    keeper.sweep(lambda trials: trials)
    family.lab.fs.calls.clear()
    keeper.sweep(lambda trials: trials)
    listed = [words for name, words in family.lab.fs.calls if name in ("find", "ls")]
    assert not [words for words in listed if "published/t/1" in words and "objects" in words]


def test_disk_use_tells_own_from_inherited(family: Family) -> None:
    use = family.keeper().disk_use()
    assert use.root.endswith("/lab-1")
    first, _, third = use.trials
    assert first.inherited_bytes == 0 < first.own_bytes
    assert third.inherited_bytes > 0
    sizes = family.lab.place.listing("objects") | family.lab.place.listing("published")
    assert use.total_bytes == sum(sizes.values())


def test_what_a_live_child_inherited_stays_though_nobody_has_committed_it(family: Family) -> None:
    lab = family.lab
    child = lab.trained("4.1", family.state_of(4), ("t/3", family.digest(3)))
    family.ledger.rows[4] = LedgerRow(4, "running", 3, "t/4", None)
    assert {file.owner for file in child.record.files} == {"t/1", "t/2", "t/3", "t/4"}
    plan = family.keeper().sweep(lambda trials: trials)
    assert [one.trial for one in plan.doomed] == [1, 2]
    assert_same(lab.loaded("9.1", "t/4", child.published.digest), family.state_of(4))


def test_many_are_listed_at_once(family: Family) -> None:
    lab = family.lab
    for trial in range(10, 40):
        row = LedgerRow(trial, "ended", None, f"t/{trial}", -float(trial))
        row.weights_digest = lab.trained(f"{trial}.1", state(0)).published.digest
        family.ledger.rows[trial] = row
    lab.fs.calls.clear()
    plan = family.keeper().sweep(lambda trials: trials)
    assert len(plan.doomed) == 32
    listed = [words for name, words in lab.fs.calls if name == "find"]
    assert len(listed) <= 6
    assert set(lab.place.listing("objects")) == {f.name for f in family.pushed[3].record.files}
