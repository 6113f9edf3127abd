"""Faults of advisors written for NNI, and of what their files and modules promise."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_ADVISING = "dispatcher/nni/tuner/advisor.py"
_ADVISORS = ("tests/integration/nni/test_advisors.py",)

ADVISING = (
    Mutation(
        "what-was-sent-before-a-restart-is-lost",
        2,
        "a trial that an advisor sends while it is rebuilt answers nobody",
        _ADVISING,
        "                self._ahead.appendleft(sent)",
        "                pass",
        _ADVISORS,
    ),
    Mutation(
        "an-advisor-is-asked-whatever-waits",
        8,
        "an advisor that sends on its own has ever more trials waiting",
        _ADVISING,
        "ask = not self._ahead and not owes",
        "ask = not owes",
        _ADVISORS,
    ),
    Mutation(
        "an-advisor-is-not-told-whom-it-ended",
        9,
        "a trial that an advisor ended has failed, for all that it is told",
        _ADVISING,
        '"EARLY_STOPPED" if sent.killed else "FAILED"',
        '"FAILED"',
        _ADVISORS,
    ),
    Mutation(
        "an-advisor-is-told-again-at-the-end-only",
        2,
        "after a restart an advisor hears what trials reported when they are over",
        "dispatcher/tuner_host/restore.py",
        "            self._metrics.until_end_of(trial)",
        "            pass",
        _ADVISORS,
    ),
    Mutation(
        "what-an-advisor-knows-is-told-twice",
        2,
        "an advisor counts a metric twice after a restart",
        _ADVISING,
        "if sent is not None and (attempt, seq) > sent.recalled:",
        "if sent is not None:",
        _ADVISORS,
    ),
    Mutation(
        "only-tuners-are-told-of-the-end",
        9,
        "an assessor's _on_exit is never called",
        "dispatcher/tuner_host/serving.py",
        "                self._assessing.on_exit()",
        "                pass",
        ("tests/integration/nni/test_sloppy_tuners.py",),
    ),
    Mutation(
        "a-parameter-within-an-option-is-handed-on",
        9,
        "a trial gets the description of a parameter for its value",
        "tuners/space/reading.py",
        "        if not self.strict:\n            return\n        if isinstance(option, Mapping)",
        "        if self.strict:\n            return\n        if isinstance(option, Mapping)",
        ("tests/unit/tuners/test_reading_spaces.py",),
    ),
    Mutation(
        "who-never-calls-back-gets-no-other-request",
        8,
        "a tuner that keeps callbacks and calls none ends its experiment after a few trials",
        "dispatcher/tuner_host/requests.py",
        'RequestEnd.CANCELLED, "its callback is still held"',
        'RequestEnd.NOT_NOW, "its callback is still held"',
        ("tests/integration/nni/test_sloppy_tuners.py", "tests/integration/nni/test_old_files.py"),
    ),
)
