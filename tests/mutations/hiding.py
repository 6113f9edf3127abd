"""Faults in what secrets, strangers' folders and full disks are kept from."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_LOGS = "trial_runtime/agent/base/logs.py"
_TAILS = ("tests/unit/trial_runtime/test_agent_parts.py::TestLogFile",)
_OWNERSHIP = "tests/unit/cli/test_ownership.py"
_DISK = "tests/faults/storage/test_notes_disk.py"

HIDING: tuple[Mutation, ...] = (
    Mutation(
        "a-tail-begins-in-the-middle-of-a-line",
        9,
        "half a secret of a trial's last lines is in the journal",
        _LOGS,
        '    begin = text.find(b"\\n", len(text) - most_bytes - 1) + 1\n',
        "    return text[-most_bytes:]\n",
        _TAILS,
    ),
    Mutation(
        "a-tail-is-of-the-newest-file",
        9,
        "the end of a secret is in the journal, since its beginning is in the file before",
        _LOGS,
        '        files = ((self.path, 0), (f"{self.path}.1", 0))\n',
        "        files = ((self.path, 0),)\n",
        _TAILS,
    ),
    Mutation(
        "a-strangers-references-are-looked-up",
        9,
        "who saves a stranger's run tells him which secrets he has guessed",
        "dispatcher/wiring/masks.py",
        "    if not ours:\n        return mask\n",
        "",
        (f"{_OWNERSHIP}::test_a_saved_run_says_nothing_of_what_its_file_refers_to",),
    ),
    Mutation(
        "a-link-in-our-folder-is-ours",
        9,
        "a link that a trial has put there has a note written into a stranger's store",
        "dispatcher/folders/ownership.py",
        "*judged, *leads):",
        "*judged):",
        (f"{_OWNERSHIP}::test_what_a_link_in_a_folder_of_ours_leads_to_is_judged",),
    ),
    Mutation(
        "an-export-is-emptied-first",
        4,
        "a full disk takes the export of yesterday",
        "dispatcher/cli/out_file.py",
        "        durable_file.replace(path.absolute(), content, mode=mode)\n",
        "        path.write_bytes(content)\n",
        (_DISK,),
    ),
    Mutation(
        "a-reader-needs-room-on-the-disk",
        10,
        "nobody can look at an experiment on a disk that is full",
        "dispatcher/queries/reader.py",
        " and not _is_full(path.parent)",
        "",
        (f"{_DISK}::test_an_experiment_that_is_over_can_be_looked_at_on_a_full_disk",),
    ),
    Mutation(
        "a-state-stands-for-the-time-before-it",
        10,
        "the page says that a slot was empty for what came later",
        "dispatcher/store/replay/slots_then.py",
        "            recorder.lasts(state, at, row.at, led=led)\n"
        "            apply(state, row.event, row.at)\n",
        "            apply(state, row.event, row.at)\n"
        "            recorder.lasts(state, at, row.at, led=led)\n",
        ("tests/unit/plots/test_slots.py",),
    ),
)
