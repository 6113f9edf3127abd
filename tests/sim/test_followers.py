"""Whoever follows a store by its changes holds what is there, whatever happens to the head."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dispatcher.store.compaction import Compaction
from tests.sim.judging import judge
from tests.support.followers import FollowedJournal
from tests.support.odds import case_of

#: Among these are journals that are folded, and experiments with up to six heads.
SEEDS = (1001, 1002, 1004, 1005, 1007, 1009, 1014, 1018)


def test_changes_are_the_difference_of_two_readings(tmp_path: Path) -> None:
    reported, heads, folded = 0, 0, 0
    for seed in SEEDS:
        folder = tmp_path / str(seed)
        folder.mkdir()
        case = case_of(seed)
        journal = FollowedJournal.open(folder / "journal.sqlite")
        try:
            journal.watch(folder, seed)
            judgement = judge(replace(case, odds=replace(case.odds, power_cuts=0)), journal)
            journal.end()
            folded += Compaction(journal).base_number() > 0
        finally:
            journal.close()
        assert not judgement.found, f"seed {seed}: {judgement.found}\n{judgement.story}"
        assert not journal.faults, f"seed {seed}: {journal.faults[:3]}"
        reported += journal.reported
        heads = max(heads, journal.epochs)
    assert reported > 400
    assert heads > 4
    assert folded > 2
