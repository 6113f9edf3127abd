"""Routes that only a page needs: the table, what changed in it, curves, metrics."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from dispatcher import queries
from dispatcher.errors import UserError
from dispatcher.operations.operation import Arguments, Scope
from dispatcher.web.answering import answer, encoded
from dispatcher.web.calm import CalmAnswers
from dispatcher.web.curves import thinned
from dispatcher.web.events import (
    MOST_WAIT_S,
    EventStream,
    changes_after,
    events_of,
    refuse_head,
)
from dispatcher.web.keys import Keys
from dispatcher.web.live import Hub
from dispatcher.web.lives import lives_in_columns
from dispatcher.web.performing import Performer
from dispatcher.web.route import (
    WebRoute,
    demand_scope,
    query_of,
    read_arguments,
    trial_of,
)
from dispatcher.web.work import Pools

#: Curves in one answer, points of each, and metrics in one answer.
MOST_CURVES: Final = 200
MOST_POINTS: Final = 2_000
MOST_METRICS: Final = 10_000

_ONE: Final = "/experiments/{experiment}"


class AskChanges(Arguments, frozen=True):
    """The cursor that a reader has, and how long it waits."""

    after: Annotated[
        str, Meta(description="The cursor of the answer before; none begins anew.", max_length=200)
    ] = ""
    wait: Annotated[
        Annotated[float, Meta(ge=0, le=MOST_WAIT_S)],
        Meta(description="Seconds to wait where nothing has changed."),
    ] = 0.0


class AskEvents(Arguments, frozen=True):
    """The cursor that a reader of a stream has."""

    after: Annotated[
        str,
        Meta(description="The cursor to go on from; Last-Event-ID counts more.", max_length=200),
    ] = ""


class AskCurves(Arguments, frozen=True):
    """Choice of curves."""

    trials: Annotated[str, Meta(description="Numbers, as in 1,2,3.", max_length=4_000)]
    points: Annotated[
        Annotated[int, Meta(ge=3, le=MOST_POINTS)], Meta(description="Points of each, at most.")
    ] = 200
    metric: Annotated[
        str,
        Meta(
            description="The name of a metric; empty: that by which trials are compared.",
            max_length=200,
        ),
    ] = ""


class AskMetrics(Arguments, frozen=True):
    """Choice of a trial's metrics."""

    attempt: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Only those of this attempt.")
    ] = None
    after: Annotated[
        Annotated[int, Meta(ge=0)], Meta(description="Only those with a greater `seq`.")
    ] = 0


class Looking:
    """Answers these routes."""

    def __init__(self, performer: Performer, pools: Pools, hub: Hub, keys: Keys) -> None:
        self._performer = performer
        self._pools = pools
        self._hub = hub
        self._keys = keys
        self._bands = CalmAnswers()

    def routes(self) -> list[WebRoute]:
        """List them."""
        return [
            WebRoute(
                f"GET {_ONE}/table", "All trials in columns; the ETag is a cursor's.",
                Scope.READ, self.table, answer="experiment, cursor, count, left_out, columns",
            ),
            WebRoute(
                f"GET {_ONE}/changes", "Trials that changed behind a cursor; can wait for some.",
                Scope.READ, self.changes, AskChanges, answer="cursor, anew, more, trials",
            ),
            WebRoute(
                f"GET {_ONE}/events", "The same as a stream, and how the experiment stands.",
                Scope.READ, self.events, AskEvents, ("text/event-stream",),
            ),
            WebRoute(
                f"GET {_ONE}/history", "The lives of all trials: for looking back.", Scope.READ,
                self.history, answer="experiment, began, until, trials, proposed, spans, notes",
            ),
            WebRoute(
                f"GET {_ONE}/curves", "Intermediate metrics of some trials, thinned out.",
                Scope.READ, self.curves, AskCurves, answer="metric, curves",
            ),
            WebRoute(
                f"GET {_ONE}/curves/bands", "Between which values the curves of most trials lie.",
                Scope.READ, self.bands, answer="trials, used, steps, low, middle, high",
            ),
            WebRoute(
                f"GET {_ONE}/trials/{{trial}}/metrics", "Metrics of one trial, as reported.",
                Scope.READ, self.metrics, AskMetrics, answer="experiment, trial, metrics, more",
            ),
        ]  # fmt: skip

    async def table(self, request: Request) -> Response:
        """Answer with the whole table."""
        demand_scope(request, Scope.READ)
        read_arguments(Arguments, query_of(request, Arguments), texts=True)
        watch = await self._hub.watch(await self._performer.folder_of(request))
        whole = await watch.table()
        return answer(request, whole.body, tag=whole.tag, small=whole.small)

    async def changes(self, request: Request) -> Response:
        """Answer with what changed."""
        identity = demand_scope(request, Scope.READ)
        wanted = read_arguments(AskChanges, query_of(request, AskChanges), texts=True)
        if not math.isfinite(wanted.wait):
            raise UserError("wait is a number of seconds")
        folder = await self._performer.folder_of(request)
        async with self._hub.looking(folder, stream=wanted.wait > 0) as watch:
            may_stay = partial(self._keys.still_counts, identity)
            step = await changes_after(watch, self._hub, wanted.after, wanted.wait, may_stay)
        return answer(request, step.body)

    async def events(self, request: Request) -> Response:
        """Answer with a stream of what changes."""
        refuse_head(request)
        identity = demand_scope(request, Scope.READ)
        wanted = read_arguments(AskEvents, query_of(request, AskEvents), texts=True)
        cursor = request.headers.get("last-event-id") or wanted.after
        folder = await self._performer.folder_of(request)
        held = self._hub.looking(folder, stream=True)
        watch = await held.__aenter__()
        try:
            if cursor and cursor != watch.cursor:
                await watch.step_from(cursor)  # a cursor that is none is refused, not streamed
            may_stay = partial(self._keys.still_counts, identity)
            events = events_of(watch, self._hub, cursor, may_stay)
            return EventStream(events, held)
        except BaseException:
            await held.__aexit__(None, None, None)
            raise

    async def history(self, request: Request) -> Response:
        """Answer with lives of trials."""
        demand_scope(request, Scope.READ)
        read_arguments(Arguments, query_of(request, Arguments), texts=True)
        folder = await self._performer.folder_of(request)
        return answer(request, await self._pools.stores.run(_history, folder))

    async def curves(self, request: Request) -> Response:
        """Answer with curves."""
        demand_scope(request, Scope.READ)
        wanted = read_arguments(AskCurves, query_of(request, AskCurves), texts=True)
        trials = _numbers(wanted.trials)
        folder = await self._performer.folder_of(request)
        found = await self._pools.stores.run(_curves, folder, trials, wanted)
        return answer(request, encoded({"metric": wanted.metric, "curves": found}))

    async def bands(self, request: Request) -> Response:
        """Answer with bands of curves; the same to all who ask within some seconds."""
        demand_scope(request, Scope.READ)
        read_arguments(Arguments, query_of(request, Arguments), texts=True)
        folder = await self._performer.folder_of(request)
        return answer(request, await self._bands.of(folder, lambda: self._made_bands(folder)))

    async def _made_bands(self, folder: Path) -> bytes:
        return await self._pools.stores.run(_bands, folder)

    async def metrics(self, request: Request) -> Response:
        """Answer with metrics."""
        demand_scope(request, Scope.READ)
        trial = trial_of(request)
        wanted = read_arguments(AskMetrics, query_of(request, AskMetrics), texts=True)
        folder = await self._performer.folder_of(request)
        found = await self._pools.stores.run(_metrics, folder, trial, wanted)
        described = {
            "experiment": folder.name,
            "trial": trial,
            "metrics": found[:MOST_METRICS],
            "more": len(found) > MOST_METRICS,
        }
        return answer(request, encoded(described))


def _numbers(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(w.isascii() and w.isdigit() and len(w) < 16 for w in words):
        raise UserError("trials are numbers, as in 1,2,3")
    if len(words) > MOST_CURVES:
        raise UserError(f"{len(words)} curves are too many at once", hint=f"{MOST_CURVES} at most")
    return list(dict.fromkeys(map(int, words)))


def _history(folder: Path) -> bytes:
    with queries.ExperimentReader.open(folder) as reader:
        return encoded(lives_in_columns(reader))


def _bands(folder: Path) -> bytes:
    with queries.ExperimentReader.open(folder) as reader:
        return encoded(queries.curve_bands(reader))


def _curves(folder: Path, trials: list[int], wanted: AskCurves) -> list[dict[str, Any]]:
    if '"' in wanted.metric or "\\" in wanted.metric:
        raise UserError(f"{wanted.metric!r} is no name of a metric")
    found = []
    with queries.ExperimentReader.open(folder) as reader:
        for trial in trials:
            curve = queries.curve(reader, trial, wanted.metric)
            steps, values = thinned(curve.steps, curve.values, wanted.points)
            found.append({"trial": trial, "steps": steps, "values": values})
    return found


def _metrics(folder: Path, trial: int, wanted: AskMetrics) -> list[queries.MetricPoint]:
    with queries.ExperimentReader.open(folder) as reader:
        queries.demand_trial(reader, trial)
        return queries.metrics(
            reader, trial, attempt=wanted.attempt, after=wanted.after, most=MOST_METRICS + 1
        )
