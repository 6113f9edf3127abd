"""Routes of NNI's REST that change something: each is an operation of the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from dispatcher.errors import DispatcherError
from dispatcher.folders.status import is_led
from dispatcher.nni.rest.guard import NotHere
from dispatcher.nni.rest.jobs import JobTable
from dispatcher.nni.rest.settings import EndpointSettings
from dispatcher.operations import table
from dispatcher.operations.operation import Context, Operation, perform
from dispatcher.queries import TrialNotFound
from dispatcher.web.answering import encoded
from dispatcher.web.audit import AuditLog
from dispatcher.web.faults import RequestRefused
from dispatcher.web.route import any_body_of, read_arguments
from dispatcher.web.work import Pools

#: By `update_type`: the key of ours, and the names that it has in a profile, the newest first.
_UPDATES: Final = {
    "TRIAL_CONCURRENCY": ("trialConcurrency", ("trialConcurrency",)),
    "MAX_TRIAL_NUM": ("maxTrialNumber", ("maxTrialNumber", "maxTrialNum")),
    "MAX_EXEC_DURATION": ("maxExperimentDuration", ("maxExperimentDuration", "maxExecDuration")),
    "SEARCH_SPACE": ("searchSpace", ("searchSpace",)),
}

#: The name under which changes are on record.
WHO: Final = "NNI's REST"


def number_of(text: str) -> int:
    """Return the number of a trial, which is its id here. Raises ``TrialNotFound``."""
    if text.isascii() and text.isdigit() and len(text) < 16:
        return int(text)
    raise TrialNotFound(f"there is no trial {text[:50]!r}", hint="ids of trials are numbers here")


class NniChanging:
    """Answers these routes.

    Args:
        settings: of the endpoint.
        jobs: the trials.
        pools: threads.
        audit: the log of what was changed.
        finish: closes the endpoint.
    """

    def __init__(
        self,
        settings: EndpointSettings,
        jobs: JobTable,
        pools: Pools,
        audit: AuditLog,
        finish: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._jobs = jobs
        self._pools = pools
        self._audit = audit
        self._finish = finish

    async def update(self, request: Request) -> Response:
        """Change a limit or the search space, which a whole profile brings."""
        kind = request.query_params.get("update_type", "")
        if kind not in _UPDATES:
            raise RequestRefused(
                "request",
                f"{kind[:100]!r} is no update_type",
                hint=f"one of {', '.join(_UPDATES)}",
            )
        key, names = _UPDATES[kind]
        profile = await any_body_of(request)
        params = profile.get("params") if isinstance(profile, dict) else None
        params = params if isinstance(params, dict) else {}
        found = [params[name] for name in names if name in params]
        if not found:
            raise RequestRefused("request", f"the profile has no params.{names[0]}")
        value = found[0]
        if key == "maxExperimentDuration" and isinstance(value, int | float):
            value = f"{value}s"
        await self._change(table.EXPERIMENT_UPDATE, {"key": key, "value": value}, key=key)
        return Response(b"")

    async def submit(self, request: Request) -> Response:
        """Run a trial with parameters by hand; they are the whole body."""
        parameters = await any_body_of(request)
        done = await self._change(table.TRIAL_SUBMIT, {"parameters": parameters})
        return Response(encoded({"sequenceId": done.trial}), media_type="application/json")

    async def cancel(self, request: Request) -> Response:
        """End a trial."""
        number = number_of(str(request.path_params["trial"]))
        await self._pools.stores.run(self._jobs.job, number)
        await self._change(table.TRIAL_KILL, {"trials": [number]}, trial=number)
        return Response(b"")

    async def import_data(self, request: Request) -> Response:
        """Give the tuner results of another experiment."""
        rows = await any_body_of(request)
        await self._change(table.EXPERIMENT_IMPORT, {"rows": rows})
        return Response(b"")

    async def stop(self, request: Request) -> Response:
        """Stop the experiment. An endpoint that belongs to it closes when it has stopped."""
        try:
            await self._change(table.STOP, {})
        except DispatcherError:
            if not self._settings.until_over or is_led(self._settings.folder):
                raise
            self._finish()  # nothing runs any more, and NNI's stop ends its server
        return Response(b"")

    async def _change(
        self, row: Operation[Any, Any], values: dict[str, Any], **about: object
    ) -> Any:
        wanted = read_arguments(row.arguments, values, texts=False)
        experiment = str(self._settings.folder)
        context = Context(who=WHO)
        try:
            done = await self._pools.changes.run(
                perform, row, context, wanted, experiment=experiment
            )
        except DispatcherError as error:
            self._audit.say(row.ident, None, failed=error.message[:300], **about)
            raise
        self._audit.say(row.ident, None, **about)
        return done


async def not_here(request: Request) -> Response:
    """Answer what NNI starts by REST, and we do not."""
    if "tensorboard" in request.url.path:
        raise NotHere("no TensorBoard is started here", hint="run: bequeath tensorboard EXPERIMENT")
    raise NotHere(
        "an experiment is not begun over REST", hint="run: bequeath nni create -c FILE --port PORT"
    )
