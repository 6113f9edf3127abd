"""Faults in what is asked of experiments: conditions, the table of operations, what views show."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_WHERE = ("tests/unit/queries/test_where.py",)
_ANSWERS = ("tests/unit/operations/test_answers.py",)

ASKING: tuple[Mutation, ...] = (
    Mutation(
        "texts-are-larger-than-numbers",
        10,
        "a condition lets through what nobody asked for",
        "dispatcher/queries/where.py",
        '    text = f"(typeof({left}) IN {kinds} AND {left} {operator.text} ?)"\n'
        "    return Sql(text, (*subject.values, *subject.values, value))\n",
        '    text = f"({left} {operator.text} ?)"\n'
        "    return Sql(text, (*subject.values, value))\n",
        _WHERE,
    ),
    Mutation(
        "what-is-not-there-is-neither",
        10,
        "trials that run are left out of what has not failed",
        "dispatcher/queries/where.py",
        '        word = "IS NOT" if operator.text == "!=" else "IS"\n',
        '        word = "<>" if operator.text == "!=" else "="\n',
        _WHERE,
    ),
    Mutation(
        "brackets-without-end",
        8,
        "a text from outside nests as deeply as it likes",
        "dispatcher/queries/where.py",
        "        if self._levels > MOST_LEVELS:\n",
        "        if self._levels > 40 * MOST_LEVELS:\n",
        _WHERE,
    ),
    Mutation(
        "a-folder-is-a-name-for-everybody",
        9,
        "somebody elsewhere names folders of this machine",
        "dispatcher/operations/operation.py",
        "        if name is not None and not self.paths and",
        "        if name is None and not self.paths and",
        _ANSWERS,
    ),
    Mutation(
        "nobody-is-asked-before-a-folder-goes",
        9,
        "an experiment is deleted against its owner's answer",
        "dispatcher/operations/changing.py",
        '        call.context.confirm(f"Delete {handle.folder} with everything in it?")\n',
        "",
        ("tests/unit/operations/test_table.py",),
    ),
    Mutation(
        "a-view-has-a-rate-of-its-own",
        10,
        "two views of one moment disagree",
        "dispatcher/queries/pace.py",
        "    return (len(recent) - 1) / since_first if since_first > 0 else None\n",
        "    return len(recent) / since_first if since_first > 0 else None\n",
        ("tests/unit/queries/test_pace.py",),
    ),
    Mutation(
        "the-limit-of-time-is-forgotten",
        10,
        "the time that is left is shown too long",
        "dispatcher/queries/pace.py",
        "    if duration_s is not None:\n",
        "    if duration_s is not None and not bounds:\n",
        ("tests/unit/queries/test_pace.py",),
    ),
)
