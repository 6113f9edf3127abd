"""From facts to findings: each fault alone is found, named and levelled; nothing else is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nfs_setup.verify import Finding, Level, Survey, facts, judged
from nfs_setup.verify.facts import Clock, Locked, Reread
from tests.unit.nfs_setup.verify.scenarios import (
    BIG,
    HELD,
    around,
    begun,
    churned,
    habit,
    refused,
    seen,
    well,
)

GUIDE = Path(__file__).parents[4] / "docs" / "existing-share.md"

PASSES, NOTE, SLOW, WRONG = Level.PASSES, Level.NOTE, Level.SLOW, Level.WRONG


def bad(survey: Survey) -> list[Finding]:
    return [one for one in judged(survey) if one.level is not PASSES]


def test_a_share_without_a_fault_passes_everything() -> None:
    found = judged(well())
    assert [one for one in found if one.level is not PASSES] == []
    assert {one.check for one in found} >= {
        *("share", "writing", "group", "same owner", "room", "clock and share", "clocks", "habits"),
        *("small files", "big file, written", "big file, read", "same bytes", "new file"),
        *(
            "announced file",
            "replaced file",
            "looked for too early",
            "listed folder",
            "replaced while read",
            "locks",
        ),
    }
    assert all(one.change == "" for one in found)


def test_the_guide_explains_every_check() -> None:
    rows = [line for line in GUIDE.read_text().splitlines() if line.startswith("| ")]
    explained = {name for row in rows for name in row.split(" | ")[0].strip("| ").split(", ")}
    checks = {one.check.partition(",")[0] for one in judged(well())} | {"mount options", "export"}
    assert checks <= explained, checks - explained


@pytest.mark.parametrize(
    "survey, check, level, words",
    [
        (around(found="nothing"), "share", WRONG, "is not there"),
        (around(found="other"), "share", WRONG, "is no folder"),
        (refused("surroundings", "HANGS", text="no answer in 30 s"), "share", WRONG, "in time"),
        (refused("surroundings", "LOST", text="not found"), "share", WRONG, "cannot be asked"),
        (around(options=("rw", "soft")), "mount options", WRONG, "'soft'"),
        (around(options=("rw", "hard", "acdirmax=120")), "mount options", NOTE, "up to 135 s"),
        (around(options=("rw", "hard", "noac")), "mount options", NOTE, "noac"),
        (around(options=("rw", "hard", "vers=3")), "mount options", NOTE, "version 3"),
        (around(kind="tmpfs", options=("rw",)), "mount options", NOTE, "memory"),
        (around(kind="lustre", options=("rw",)), "mount options", NOTE, "flock"),
        (around(kind="ext4", exports=("*(rw,sync)",)), "export", NOTE, "everybody"),
        (around(kind="ext4", exports=("a(rw,async)",)), "export", WRONG, "async for a"),
        (
            around(kind="ext4", exports=("a(rw,sync,no_root_squash)",)),
            *("export", NOTE, "root there is root here"),
        ),
        (refused("begun", "EROFS"), "writing", WRONG, "read-only"),
        (refused("begun", "EACCES"), "writing", WRONG, "uid 1000, folder of 1000:1000, mode 2770"),
        (refused("begun", "ENOSPC"), "writing", WRONG, "full"),
        (refused("begun", "EDQUOT"), "writing", WRONG, "quota"),
        (refused("begun", "ESTALE"), "writing", WRONG, "does not know this folder"),
        (refused("begun", "EIO"), "writing", WRONG, "input or output"),
        (refused("begun", "EXDEV"), "writing", WRONG, "EXDEV"),
        (begun(uid=65534), "writing", NOTE, "(nobody)"),
        (begun(uid=4294967294), "writing", NOTE, "(nobody)"),
        (around(uid=0), "writing", PASSES, "root_squash"),
        (begun(gid=7), "group", NOTE, "gid 7, not 1000"),
        (begun(parent_set_gid=False), "group", NOTE, "not set-gid"),
        (around(free_bytes=1 << 20), "room", WRONG, "1.0 MiB"),
        (around(inodes_free=5), "room", WRONG, "5 of 1000000 inodes"),
        (around(free_bytes=1 << 30), "room", NOTE, "1.0 GiB of 100.0 GiB"),
        (
            begun(ahead_least_s=7200.0, ahead_most_s=7200.1),
            "clock and share",
            WRONG,
            "7200 s ahead",
        ),
        (begun(ahead_least_s=-5.1, ahead_most_s=-5.0), "clock and share", NOTE, "5 s behind"),
        (begun(ahead_least_s=-9.0, ahead_most_s=4.0), "clock and share", PASSES, "within"),
        (habit("fsync", "EINVAL"), "fsync", WRONG, "power cut"),
        (habit("exclusive create", "no"), "exclusive create", WRONG, "two writers"),
        (habit("replace an open file", "EACCES"), "replace an open file", WRONG, "EACCES"),
        (habit("upper and lower case", "no"), "upper and lower case", NOTE, "differ in case"),
        (habit("sparse files", "no"), "sparse files", NOTE, "holes"),
        (habit("odd names", "ENOSPC"), "writing", WRONG, "full"),
        (refused("habits", "EIO", "habits"), "habits", WRONG, "input or output"),
        (refused("pace", "ENOSPC", "pace"), "small files", WRONG, "full"),
        (refused("written", "ENOSPC", "write big"), "big file", WRONG, "full"),
        (seen("new", 30.0), "new file", SLOW, "after up to 30.00 s"),
        (seen("new", -1.0), "new file", WRONG, "not seen in 80 s"),
        (seen("replaced", 78.0), "replaced file", WRONG, "after up to 78.00 s"),
        (seen("announced", -1.0), "announced file", WRONG, "not seen in 80 s"),
        (seen("announced", 2.0), "announced file", SLOW, "child starts so much later"),
        (seen("sought", 30.0), "looked for too early", NOTE, "30.00 s"),
        (seen("sought", -1.0), "looked for too early", NOTE, "not seen in 80 s"),
        (seen("listed", 30.0), "listed folder", NOTE, "'ls' is behind"),
        (refused("seen", "ENOENT", "prime"), "seen by others", WRONG, "does not show"),
        (churned(torn=3), "replaced while read", WRONG, "3 of 93 reads were torn"),
        (churned(missing=2), "replaced while read", WRONG, "no file under the name"),
        (churned(backwards=1), "replaced while read", NOTE, "older file came back"),
        (churned(reads=0), "replaced while read", NOTE, "no read"),
        (churned(stale=9), "replaced while read", PASSES, "11 times the old file was gone"),
        (refused("churned", "EACCES", "churn"), "replaced while read", WRONG, "may not"),
    ],
)
def test_each_fault_is_named(survey: Survey, check: str, level: Level, words: str) -> None:
    found = [one for one in judged(survey) if one.check == check and words in one.seen]
    assert [one.level for one in found] == [level], judged(survey)
    others = {one.check for one in judged(survey) if one.level is not PASSES and one not in found}
    assert not others, "one fault is one finding"


def test_readers_wait_longer_where_a_mount_caches_for_longer() -> None:
    survey = seen("announced", 100.0)
    assert {one.level for one in bad(survey) if one.check == "announced file"} == {WRONG}
    around_ = survey.machines[0].surroundings
    assert isinstance(around_, facts.Surroundings)
    options = (*around_.options, "actimeo=120")
    survey.machines[0].surroundings = replace(around_, options=options)
    assert {one.level for one in bad(survey) if one.check == "announced file"} == {SLOW}


def test_a_folder_that_is_not_there_is_asked_nothing_more() -> None:
    survey = around(found="nothing")
    assert [one.where for one in judged(survey) if one.check == "room"] == ["two"]


def test_root_that_is_root_on_the_share_is_named() -> None:
    survey = begun(uid=0)
    around_ = survey.machines[0].surroundings
    assert isinstance(around_, facts.Surroundings)
    survey.machines[0].surroundings = replace(around_, uid=0)
    (one,) = bad(survey)
    assert (one.check, one.level) == ("writing", NOTE)
    assert "no_root_squash" in one.seen
    survey.machines[0].surroundings = replace(around_, uid=0, kind="ext4")
    assert bad(survey) == [], "on its own disk root is root"


def test_what_another_machine_made_and_does_not_show_is_no_fault_of_writing() -> None:
    survey = well()
    survey.machines[1].begun = facts.Failure("begin", "ENOENT", "No such file")
    found = [one for one in bad(survey) if one.where == "two"]
    assert [(one.check, one.level) for one in found] == [("the same share", WRONG)]


def test_users_that_are_others_elsewhere_are_named() -> None:
    survey = well()
    survey.machines[1].published = facts.Published({}, 1000, 1000)
    found = survey.machines[0].seen
    assert isinstance(found, facts.Seen)
    found.owners["two"] = "4294967294:1000"
    (one,) = bad(survey)
    assert one.seen == "made by 1000:1000, seen as 4294967294:1000"
    assert "idmapd" in one.change


def test_a_machine_whose_clock_differs_from_the_first_ones_is_named() -> None:
    survey = well()
    survey.machines[1].clock = Clock(-3601.0, -3600.0)
    (one,) = bad(survey)
    assert (one.check, one.where, one.level) == ("clocks", "two, one", WRONG)
    assert "3600 s behind" in one.seen


def test_slow_is_not_wrong() -> None:
    survey = well()
    survey.machines[0].pace = facts.Pace(5, 0.5, 0.9, 0.4, 0.8)
    survey.machines[0].written = facts.BigFile(64 << 20, 60.0, "d")
    assert {(one.check, one.level) for one in bad(survey)} == {
        ("small files", SLOW),
        ("big file, written", SLOW),
    }


def test_bytes_that_differ_are_wrong() -> None:
    survey = well()
    survey.rereads[0] = Reread("one", "two", replace(BIG, digest="e"))
    (one,) = bad(survey)
    assert (one.check, one.where, one.level) == ("same bytes", "two ← one", WRONG)
    survey.rereads[0] = Reread("one", "two", facts.Failure("read big", "EIO", ""))
    (one,) = bad(survey)
    assert (one.check, one.level) == ("big file, read", WRONG)


def test_locks_are_only_worth_a_note() -> None:
    survey = well()
    for tried in (
        facts.Held(True, False, ""),
        facts.Held(False, False, "ENOLCK"),
        facts.Failure("attempt", "HANGS", "no answer in 30 s"),
    ):
        survey.locks[0] = Locked("one", "two", HELD, tried)
        (one,) = bad(survey)
        assert (one.check, one.where, one.level) == ("locks", "two ← one", NOTE)


def test_torn_views_and_unreadable_files_are_wrong() -> None:
    survey = well()
    found = survey.machines[0].seen
    assert isinstance(found, facts.Seen)
    found.torn["two/new"] = 2
    found.errors["two/replaced"] = "EACCES"
    assert [(one.check, one.level) for one in bad(survey)] == [
        ("whole files", WRONG),
        ("seen by others", WRONG),
    ]


def test_what_is_said_of_several_machines_is_said_once() -> None:
    (share,) = [one for one in judged(well()) if one.check == "share"]
    assert share.where == "one, two"
    assert share.seen == "NFS, server:/w at /mnt/w (rw,hard,vers=4.2)"
