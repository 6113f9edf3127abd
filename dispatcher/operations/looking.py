"""Operations that look at one experiment, and change nothing."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec

from dispatcher import queries
from dispatcher.experiments.find import all_experiments, experiments_of_others
from dispatcher.experiments.standing import Standing
from dispatcher.operations import answers
from dispatcher.operations import arguments as given
from dispatcher.operations.operation import Call, NoChoice
from dispatcher.operations.trials import cells, note_unknown


def experiments(call: Call, wanted: given.ListExperiments) -> answers.ExperimentList:
    """List experiments; those of others are counted."""
    base, everywhere = call.context.base, wanted.everywhere
    listed = all_experiments(base, everywhere=everywhere)
    return answers.ExperimentList(listed, experiments_of_others(base, everywhere=everywhere))


def leaderboard(call: Call, wanted: given.ArrangeBoard) -> answers.Leaderboard:
    """Put the best trials of all experiments on boards."""
    found = all_experiments(call.context.base, everywhere=wanted.everywhere)
    chosen = queries.BoardFilter(
        wanted.dataset, wanted.tuner, wanted.tag, wanted.name, starred=wanted.starred
    )
    group = queries.BoardGroup(wanted.group)
    boards = queries.leaderboard(found, group, chosen, limit=wanted.limit)
    return answers.Leaderboard(wanted.group, boards)


def status(call: Call, wanted: NoChoice) -> Standing:
    """Look at store and head."""
    return call.handle.standing()


def head(call: Call, wanted: NoChoice) -> answers.HeadNow:
    """Ask its head how it stands."""
    return answers.HeadNow(call.handle.id, call.handle.snapshot())


def why(call: Call, wanted: NoChoice) -> answers.Reason:
    """Explain why nothing, or not more, is running."""
    cause, text = call.handle.why()
    return answers.Reason(call.handle.id, cause, text)


def best(call: Call, wanted: given.ListBest) -> answers.BestTrials:
    """List the best trials, or the front."""
    handle = call.handle
    leaders, objectives = handle.leaders(wanted.limit, condition=wanted.where)
    note_unknown(call, wanted.where)
    with handle.reading() as reader:
        mode = reader.mode
    shown = cells(call, wanted.columns, leaders)
    return answers.BestTrials(handle.id, mode, objectives, leaders, shown)


def lineage(call: Call, wanted: given.ChooseRoot) -> answers.InheritanceTree:
    """Build the inheritance tree."""
    tree = call.handle.lineage(wanted.root)
    return answers.InheritanceTree(
        call.handle.id, tree.mode, tree.nodes, tree.roots, tree.best, tree.best_path
    )


def then(call: Call, wanted: given.LookBack) -> answers.SearchThen:
    """Look back at a moment."""
    with call.handle.reading() as reader:
        moment = queries.moment_of(queries.history(reader), wanted.time, reader.mode)
    newest = list(reversed(moment.trials))
    return answers.SearchThen(
        experiment=call.handle.id,
        time=moment.time,
        began=moment.began,
        until=moment.until,
        states=moment.states,
        outcomes=moment.outcomes,
        best=moment.best,
        trials=newest[: wanted.limit],
        more=len(newest) > wanted.limit,
        notes=moment.notes,
    )


def settings(call: Call, wanted: NoChoice) -> answers.ResolvedSettings:
    """Read settings for a person's eyes."""
    handle = call.handle
    return answers.ResolvedSettings(handle.id, str(handle.folder), handle.settings())


def rows(call: Call, wanted: NoChoice) -> list[dict[str, Any]]:
    """List one flat object a trial."""
    return call.handle.rows()


def table(call: Call, wanted: NoChoice) -> str:
    """Write the same as CSV."""
    return call.handle.csv()


def picture(call: Call, wanted: given.DrawPicture) -> bytes:
    """Draw a PNG; where it has nothing to show, it says so, and so does a note."""
    if wanted.kind == "lineage" and not call.handle.inherits:
        call.context.note(f"there is nothing to draw: {queries.NO_PARENT}")
    with tempfile.TemporaryDirectory(prefix="bequeath-") as folder:
        file = Path(folder) / f"{wanted.kind}.png"
        choice = msgspec.structs.asdict(wanted)
        call.handle.draw(choice.pop("kind"), file, **choice)
        return file.read_bytes()
