"""Operations on the trials of one experiment."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from dispatcher import queries
from dispatcher.errors import UserError
from dispatcher.operations import answers
from dispatcher.operations import arguments as given
from dispatcher.operations.operation import Call, NoChoice


def ls(call: Call, wanted: given.ListTrials) -> answers.TrialList:
    """List trials."""
    chosen = queries.TrialFilter(
        shown=tuple(map(state_of, wanted.state)),
        outcomes=_failures() if wanted.failed else (),
        parent=wanted.parent,
        live=True if wanted.live else None,
        condition=wanted.where,
    )
    with call.handle.reading() as reader:
        by = queries.sort_key(reader, wanted.sort)
    trials = call.handle.trials(chosen, sort=by, reverse=wanted.reverse, limit=wanted.limit)
    note_unknown(call, wanted.where)
    return answers.TrialList(call.handle.id, trials, cells(call, wanted.columns, trials))


def _failures() -> tuple[str, ...]:
    from dispatcher.core.model import Outcome  # the core is much to import for a list

    return (Outcome.FAILED.value, Outcome.TIMED_OUT.value, Outcome.LOST.value)


def cells(call: Call, columns: str, trials: Sequence[queries.TrialSummary]) -> list[list[Any]]:
    """Read the columns that were asked for, a list for each trial.

    Args:
        call: of the operation.
        columns: their names, with commas between them; empty for none.
        trials: whose.

    Raises:
        UserError: no trial has such a column.
    """
    if not columns:
        return []
    with call.handle.reading() as reader:
        named = queries.named_columns(reader, columns)
        return queries.cells_of(reader, named, [one.id for one in trials])


def note_unknown(call: Call, text: str) -> None:
    """Note what no trial has: it is no error, since one may come that has it."""
    if not text:
        return
    with call.handle.reading() as reader:
        for sentence in queries.doubts(reader, text):
            call.context.note(sentence)


def state_of(typed: str) -> str:
    """Return the state or outcome that a word means. Raises ``UserError``."""
    from dispatcher.core.model import Outcome, TrialState

    states = [one.value for kind in (TrialState, Outcome) for one in kind]
    word = typed.lower().replace("-", " ").replace("_", " ")
    if word not in states:
        near = difflib.get_close_matches(word, states, n=1)
        raise UserError(
            f"{word!r} is no state; there are {', '.join(states)}",
            hint=f"did you mean {near[0]!r}?" if near else "",
        )
    return word


def show(call: Call, wanted: NoChoice) -> answers.OneTrial:
    """Read all about one trial."""
    one = call.handle.trial(call.trial)
    return answers.OneTrial(
        call.handle.id, one.trial, one.attempts, one.metrics, one.children, one.notes
    )


def files(call: Call, wanted: given.ListFiles) -> answers.TrialFiles:
    """List the files of an attempt: of its machine, else those that are here."""
    from dispatcher.attempt_files.fetching import kind_of

    with call.handle.attempts(call.trial) as located:
        one = located.attempt(wanted.attempt)
        shown = located.show_files(one)
        place, listed = shown.files.place, shown.listed
        shown.files.close()
    if shown.away is not None:
        call.context.note(f"{shown.away.where or one.worker}: {shown.away.message}")
        call.context.note("what is here of it:")
    return answers.TrialFiles(
        attempt=one.name,
        place=place,
        files=[
            answers.TrialFile(each.path, kind_of(each.path), each.size, each.changed_at, each.link)
            for each in listed.entries
            if wanted.links or not each.link
        ],
        cut=listed.cut,
    )


def kill(call: Call, wanted: given.KillTrials) -> answers.KilledTrials:
    """End trials, one after another; those before one that does not exist are ended."""
    ended = []
    for one in call.handle.stop_trials(wanted.trials):
        ended.append(answers.KilledTrial(one.trial, one.state, one.before, one.outcome))
        call.context.part(ended[-1])
    return answers.KilledTrials(call.handle.id, {one.trial: one.state for one in ended}, ended)


def submit(call: Call, wanted: given.SubmitTrial) -> answers.SubmittedTrial:
    """Run a trial with parameters of the caller's own."""
    return answers.SubmittedTrial(call.handle.id, call.handle.submit(wanted.parameters))
