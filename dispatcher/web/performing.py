"""Operations as routes: arguments from path, query and body, the answer as JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from dispatcher.errors import DispatcherError, ExperimentNotFound
from dispatcher.experiments.known_folders import known_folders
from dispatcher.experiments.standing import Standing
from dispatcher.experiments.why import explained
from dispatcher.folders.ownership import demand_ours, is_id
from dispatcher.inference.models import IDLE_S, Models
from dispatcher.operations import answers
from dispatcher.operations.arguments import DrawPicture, ListTrials, StopExperiment
from dispatcher.operations.operation import Context, Operation, Scope, Subject, perform
from dispatcher.operations.table import INFER, OPERATIONS
from dispatcher.web.answering import answer, encoded, tag_of
from dispatcher.web.audit import AuditLog
from dispatcher.web.faults import RequestRefused, in_a_header
from dispatcher.web.keys import Identity
from dispatcher.web.live import Hub
from dispatcher.web.plots import Plots
from dispatcher.web.repeated import RepeatedRequests
from dispatcher.web.route import body_of, demand_scope, query_of, read_arguments, trial_of
from dispatcher.web.work import Pools

#: Rows of a list, unless fewer are asked for.
MOST_ROWS: Final = 10_000

#: Answers that are kept for requests that come again, and bytes of them together.
_MOST_KEPT: Final = 1_000
_MOST_KEPT_BYTES: Final = 8 << 20

_MOST_KEY: Final = 200

#: What a change with `If-Match` is about: the operation that reads the same.
_STATE_OF: Final = {
    "experiment update": "experiment show",
    "weights pin": "trial show",
    "weights unpin": "trial show",
}

Extra = Callable[[Path], Awaitable[Any]]


class Performer:
    """Carries operations out for requests."""

    def __init__(self, base: Path | None, pools: Pools, hub: Hub, audit: AuditLog) -> None:
        self._base = base
        self._pools = pools
        self._hub = hub
        self._audit = audit
        self.models = Models(keep_s=IDLE_S)  #: ended by who closes the server
        self._changed = RepeatedRequests(_MOST_KEPT, _MOST_KEPT_BYTES)
        # Apart: their answers are large, and must not displace those to changes.
        self._models_asked = RepeatedRequests(_MOST_KEPT, _MOST_KEPT_BYTES)
        self.plots = Plots(pools)
        self._shared: dict[str, Extra] = {
            "status": self._standing,
            "top": self._head,
            "why": self._why,
        }

    async def folder_of(self, request: Request) -> Path:
        """Find the experiment in the path.

        Raises:
            ExperimentNotFound: there is none.
            NotOurs: it is somebody else's.
        """
        return await self._pools.stores.run(self.find, str(request.path_params["experiment"]))

    def find(self, name: str) -> Path:
        """The same by its name. Blocks."""
        try:
            return Context(base=self._base, paths=False).handle(name).folder
        except ExperimentNotFound:
            for base in [self._base] if self._base else known_folders():
                if is_id(name) and (base / name).is_dir():
                    demand_ours(base / name)
            raise

    async def perform(self, row: Operation[Any, Any], request: Request) -> Response:
        """Answer a request that asks for an operation."""
        identity = demand_scope(request, row.scope)
        has_body = row.method in ("POST", "PUT", "PATCH")
        values = await body_of(request) if has_body else query_of(request, row.arguments)
        for name, value in request.path_params.items():
            if name not in ("experiment", "trial"):
                values[name] = value
        given = read_arguments(row.arguments, values, texts=not has_body)
        if isinstance(given, StopExperiment) and given.wait:
            raise RequestRefused(
                "request", "a route does not wait", hint="…/events says when it has stopped"
            )
        if row.scope is not Scope.CHANGE:
            return await self._read(row, request, given, identity)
        key = request.headers.get("idempotency-key")
        if key is None:
            return await self._change(row, request, given, identity)
        return await self._once(key, row, request, given, identity)

    # -- reading ------------------------------------------------------------------------------

    async def _read(
        self, row: Operation[Any, Any], request: Request, given: Any, identity: Identity
    ) -> Response:
        notes: list[str] = []
        if isinstance(given, DrawPicture) or row.name.startswith("plot "):
            body = await self.plots.body(await self.folder_of(request), row, given)
            kind = "image/png" if row.answer is bytes else "application/json"
            return answer(request, body, media=kind)
        if row.name in self._shared:
            value = await self._shared[row.name](await self.folder_of(request))
        else:
            if isinstance(given, ListTrials):
                given = _limited(given)
            pool = self._pools.files if row.scope is Scope.LOGS else self._pools.stores
            value = await pool.run(self._carry_out, row, request, given, identity, notes)
        if row.scope is Scope.LOGS:
            self._audit.say(row.ident, identity, **_about(request))
        headers = {"Bequeath-Notes": in_a_header(notes)} if notes else {}
        if row.answer is bytes:
            return answer(request, value, media="image/png", headers=headers)
        if row.answer is str:
            name = f'attachment; filename="{request.path_params["experiment"]}.csv"'
            headers |= {"Content-Disposition": name}
            body = value.encode(errors="replace")
            return answer(request, body, media="text/csv; charset=utf-8", headers=headers)
        return answer(request, encoded(value), headers=headers)

    async def _standing(self, folder: Path) -> Standing:
        return await (await self._hub.watch(folder)).standing()

    async def _head(self, folder: Path) -> answers.HeadNow:
        found = await self._standing(folder)
        return answers.HeadNow(folder.name, found.head)

    async def _why(self, folder: Path) -> answers.Reason:
        found = await self._standing(folder)
        cause, text = explained(folder, found.experiment, found.head)
        return answers.Reason(folder.name, cause, text)

    def _carry_out(
        self,
        row: Operation[Any, Any],
        request: Request,
        given: Any,
        identity: Identity,
        notes: list[str],
    ) -> Any:
        by = "the web page" if identity.by_cookie else "the REST interface"
        who = f"{by} (token …{identity.mark})"
        context = Context(
            who=who, base=self._base, paths=False, note=notes.append, models=self.models
        )
        experiment = request.path_params.get("experiment")
        if row.subject is not Subject.MACHINE:
            found = self.find(str(experiment))
            experiment = found.name
            if row.scope is Scope.CHANGE and experiment != request.path_params["experiment"]:
                raise ExperimentNotFound(
                    "a change names the whole id of an experiment", hint=f"it is {experiment}"
                )
        trial = trial_of(request) if row.subject is Subject.TRIAL else None
        return perform(row, context, given, experiment=experiment, trial=trial)

    # -- changing -------------------------------------------------------------------------------

    async def _change(
        self, row: Operation[Any, Any], request: Request, given: Any, identity: Identity
    ) -> Response:
        await self._demand_match(row, request, identity)
        notes: list[str] = []
        pool = self._pools.models if row is INFER else self._pools.changes
        try:
            value = await pool.run(self._carry_out, row, request, given, identity, notes)
        except DispatcherError as error:
            self._audit.say(row.ident, identity, failed=error.message[:300], **_about(request))
            raise
        self._audit.say(row.ident, identity, **_about(request))
        headers = {"Bequeath-Notes": in_a_header(notes)} if notes else {}
        return Response(encoded(value), 200, headers, "application/json")

    async def _demand_match(
        self, row: Operation[Any, Any], request: Request, identity: Identity
    ) -> None:
        """Raise unless the state is the one that `If-Match` names."""
        wanted = request.headers.get("if-match")
        if wanted is None:
            return
        name = _STATE_OF.get(row.name)
        if name is None:
            raise RequestRefused("request", f"{row.name!r} has no state that If-Match could name")
        of = OPERATIONS[name]
        value = await self._pools.stores.run(
            self._carry_out, of, request, of.arguments(), identity, []
        )
        if wanted.strip() not in (tag_of(encoded(value)), "*"):
            raise RequestRefused("changed", f"it has changed since it was read: {of.route}")

    async def _once(
        self, key: str, row: Operation[Any, Any], request: Request, given: Any, identity: Identity
    ) -> Response:
        """Carry a change out once for a key; the same request gets the same answer again."""
        if not 0 < len(key) <= _MOST_KEY or not key.isprintable():
            raise RequestRefused("request", f"an Idempotency-Key has 1 to {_MOST_KEY} letters")
        place = (identity.who, request.url.path, request.method, key)
        kept = self._models_asked if row is INFER else self._changed
        return await kept.once(
            place, tag_of(encoded(given)), lambda: self._change(row, request, given, identity)
        )


def _limited(given: ListTrials) -> ListTrials:
    if given.limit is not None and given.limit > MOST_ROWS:
        raise RequestRefused(
            "too-large",
            f"a list has {MOST_ROWS:,} trials at most",
            hint="all of them are in …/table, and what changes in …/changes",
        )
    return msgspec.structs.replace(given, limit=given.limit or MOST_ROWS)


def _about(request: Request) -> dict[str, Any]:
    """Return what a request is about, for the log."""
    return {name: str(value)[:200] for name, value in request.path_params.items()}
