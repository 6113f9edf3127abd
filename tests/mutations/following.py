"""Faults in the count of changes, and in what those who follow it are given."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_CHANGES = ("tests/unit/queries/test_changes.py",)
_FOLLOWERS = ("tests/sim/test_followers.py",)
_SCHEMA_2 = ("tests/upgrade/test_schema_2.py",)

_MISSED = "pages and sinks never hear of a change"

FOLLOWING: tuple[Mutation, ...] = (
    Mutation(
        "late-reports-touch-no-trial",
        10,
        _MISSED,
        "dispatcher/store/trial_rows.py",
        "    stamp(raw, beside, touch)\n",
        "",
        ("tests/unit/store/test_trial_rows.py", *_FOLLOWERS),
    ),
    Mutation(
        "the-count-stands-still",
        10,
        _MISSED,
        "dispatcher/store/touches.py",
        "    return newest + 1\n",
        "    return newest or 1\n",
        _CHANGES,
    ),
    Mutation(
        "metrics-are-not-in-the-count",
        10,
        _MISSED,
        "dispatcher/store/touches.py",
        "max((SELECT coalesce(max(touched), 0) FROM trials),",
        "max((SELECT coalesce(max(touched), 0) FROM trials), 0 *",
        (*_CHANGES, *_FOLLOWERS),
    ),
    Mutation(
        "rows-are-touched-that-stay-as-they-are",
        10,
        "followers hear of what did not change",
        "dispatcher/store/trial_rows.py",
        "    raw.executemany(statements.UPSERT_IF_OTHER, others)\n",
        "    raw.executemany(statements.UPSERT_TRIAL, others)\n",
        (*_CHANGES, *_FOLLOWERS),
    ),
    Mutation(
        "the-count-is-in-digests",
        4,
        "every experiment that was compacted is called damaged after an upgrade",
        "dispatcher/store/schema.py",
        'for name in table.columns if name != "touched")',
        "for name in table.columns)",
        _SCHEMA_2,
    ),
    Mutation(
        "rebuilt-tables-are-as-of-the-beginning",
        10,
        _MISSED,
        "dispatcher/store/verify.py",
        "        count_anew(raw, touch)\n",
        "",
        _CHANGES,
    ),
    Mutation(
        "pins-touch-no-trial",
        10,
        _MISSED,
        "dispatcher/store/weights_ledger.py",
        "            if changed:\n",
        "            if not changed:\n",
        _CHANGES,
    ),
    Mutation(
        "removals-touch-no-trial",
        10,
        _MISSED,
        "dispatcher/store/weights_ledger.py",
        "            stamp(self._raw, [each.trial for each in going], next_touch(self._raw))\n",
        "",
        _CHANGES,
    ),
    Mutation(
        "copies-count-no-removals",
        10,
        _MISSED,
        "dispatcher/store/copying.py",
        "        stamp(writer, [row[1] for row in rows], next_touch(writer))\n",
        "",
        _CHANGES,
    ),
    Mutation(
        "a-power-cut-is-not-seen",
        10,
        "a page shows for ever what was never so",
        "dispatcher/queries/changed.py",
        "    return row is not None and place.touched <= int(row[0])\n",
        "    return row is not None\n",
        _CHANGES,
    ),
    Mutation(
        "cursors-of-other-stores-are-followed",
        10,
        "a sink leaves out what it believes to have seen",
        "dispatcher/queries/changed.py",
        "    return row is not None and place.touched <= int(row[0])\n",
        "    return row is None or place.touched <= int(row[0])\n",
        _CHANGES,
    ),
    Mutation(
        "heads-that-do-not-count-are-believed",
        10,
        _MISSED,
        "dispatcher/queries/changed.py",
        "    return None if row is None else str(row[0])\n",
        '    return "old" if row is None else str(row[0])\n',
        (*_CHANGES, *_SCHEMA_2),
    ),
    Mutation(
        "a-page-of-changes-skips-the-next-row",
        10,
        _MISSED,
        "dispatcher/queries/changed.py",
        "        reached = rows[-1][0] if more else _Place(newest)\n",
        "        reached = _Place(rows[-1][0].touched) if more else _Place(newest)\n",
        (*_FOLLOWERS, *_SCHEMA_2),
    ),
    Mutation(
        "an-end-comes-before-its-metrics",
        10,
        "a sink closes a run whose last points are to come",
        "dispatcher/queries/changed.py",
        "_METRIC, _TRIAL, _ALL = 0, 1, 2\n",
        "_TRIAL, _METRIC, _ALL = 0, 1, 2\n",
        (*_CHANGES, *_FOLLOWERS),
    ),
    Mutation(
        "compacted-events-are-not-missed",
        10,
        "who follows events goes on without those that are gone",
        "dispatcher/queries/journal_rows.py",
        "    return upto if there is None or there[0] < upto - row else 0\n",
        "    return 0\n",
        _CHANGES,
    ),
)
