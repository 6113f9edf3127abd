"""Routes of NNI's REST that read."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from dispatcher.experiments.standing import Standing
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.folders.names import HEAD_LOG_NAME, TUNER_LOG_NAME
from dispatcher.nni.rest import profile
from dispatcher.nni.rest.changing import number_of
from dispatcher.nni.rest.jobs import JobTable
from dispatcher.nni.rest.settings import EndpointSettings
from dispatcher.nni.rows import is_result, result, standing_of
from dispatcher.operations import arguments as given
from dispatcher.operations import table
from dispatcher.operations.operation import Context, perform
from dispatcher.web.answering import answer, encoded
from dispatcher.web.faults import RequestRefused
from dispatcher.web.live import Hub
from dispatcher.web.outputs import MOST_BYTES, AskLog, read_part
from dispatcher.web.settings import version
from dispatcher.web.work import Pools
from trial_runtime.opening import open_regular

#: Trials whose metrics are read at once.
TRIALS_AT_ONCE: Final = 200

#: The files of a trial by NNI's names, and the output of ours that each is.
_FILES: Final = {"trial.log": "stdout", "stdout": "stdout", "stderr": "stderr"}

#: The logs by NNI's names.
_LOGS: Final = {"nnimanager.log": HEAD_LOG_NAME, "dispatcher.log": TUNER_LOG_NAME}

#: What a trial or a tuner wrote is shown as text, and runs nothing.
_TEXT: Final = {"Content-Security-Policy": "sandbox; default-src 'none'"}

_LAST: Final = (1 << 62) - 1


class NniReading:
    """Answers these routes.

    Args:
        settings: of the endpoint.
        jobs: the trials.
        hub: asks store and head how it stands, once a second at most.
        pools: threads.
    """

    def __init__(self, settings: EndpointSettings, jobs: JobTable, hub: Hub, pools: Pools) -> None:
        self._settings = settings
        self._jobs = jobs
        self._hub = hub
        self._pools = pools

    async def standing(self) -> Standing:
        """Return how the experiment stands."""
        return await (await self._hub.watch(self._settings.folder)).standing()

    async def version(self, request: Request) -> Response:
        """Answer with our version, as text."""
        return Response(version(), media_type="text/plain; charset=utf-8")

    async def status(self, request: Request) -> Response:
        """Answer with NNI's word for how it stands."""
        word, errors = standing_of(await self.standing())
        return _json(request, {"status": word, "errors": errors})

    async def experiment(self, request: Request) -> Response:
        """Answer with the profile."""
        seen = await self.standing()
        number = await self._pools.stores.run(self._jobs.next_number)
        found = await self._pools.stores.run(
            profile.profile_of, self._settings.folder, seen, number
        )
        return _json(request, found)

    async def metadata(self, request: Request) -> Response:
        """Answer with the line of this experiment."""
        return _json(request, await self._line())

    async def experiments(self, request: Request) -> Response:
        """Answer with the lines of all experiments."""
        found = await self._pools.stores.run(
            profile.all_experiments, await self._line(), self._settings.state
        )
        return _json(request, found)

    async def _line(self) -> dict[str, Any]:
        seen = await self.standing()
        own = self._settings
        return await self._pools.stores.run(
            profile.metadata_of, own.folder, seen, own.port, own.prefix
        )

    async def statistics(self, request: Request) -> Response:
        """Answer with numbers of trials by status."""
        return _json(request, await self._pools.stores.run(self._jobs.statistics))

    async def trials(self, request: Request) -> Response:
        """Answer with all trials, or those of one status."""
        status = request.query_params.get("status")
        return answer(request, await self._pools.stores.run(self._jobs.jobs, status))

    async def trial(self, request: Request) -> Response:
        """Answer with one trial."""
        number = number_of(str(request.path_params["trial"]))
        return answer(request, await self._pools.stores.run(self._jobs.job, number))

    async def metrics(self, request: Request) -> Response:
        """Answer with the metrics of one trial, or of all."""
        kind = request.query_params.get("type")
        trial = request.path_params.get("trial")
        if trial is not None:
            number = number_of(str(trial))
            await self._pools.stores.run(self._jobs.job, number)
            return await self._metrics_between(number, number, kind)
        return await self._metrics_between(0, _LAST, kind)

    async def metrics_in_range(self, request: Request) -> Response:
        """Answer with the metrics of trials by number."""
        first, last = (str(request.path_params[name]) for name in ("first", "last"))
        if not all(one.isascii() and one.isdigit() and len(one) < 16 for one in (first, last)):
            raise RequestRefused("request", "a range is two numbers of trials")
        return await self._metrics_between(int(first), int(last), None)

    async def _metrics_between(self, first: int, last: int, kind: str | None) -> Response:
        numbers = await self._pools.stores.run(self._jobs.numbers)
        chosen = [one for one in numbers if first <= one <= last]
        pieces = self._metric_pieces(chosen, kind)
        return StreamingResponse(pieces, media_type="application/json")

    async def _metric_pieces(self, numbers: list[int], kind: str | None) -> AsyncIterator[bytes]:
        """Yield a JSON list, read a few trials at a time: a client may want a million metrics."""
        between = b"["
        for at in range(0, len(numbers), TRIALS_AT_ONCE):
            some = numbers[at : at + TRIALS_AT_ONCE]
            found = await self._pools.stores.run(self._jobs.metrics, some[0], some[-1], kind)
            if found:
                yield between + b",".join(found)
                between = b","
        yield b"]" if between == b"," else b"[]"

    async def latest_metrics(self, request: Request) -> Response:
        """Answer with the newest metrics of each trial."""
        return answer(request, await self._pools.stores.run(self._jobs.latest))

    async def results(self, request: Request) -> Response:
        """Answer with parameters and results of trials that are over."""
        return _json(request, await self._pools.stores.run(_results, self._settings.folder))

    async def trial_file(self, request: Request) -> Response:
        """Answer with the end of what a trial wrote, wherever it ran."""
        number = number_of(str(request.path_params["trial"]))
        stream = _FILES.get(str(request.path_params["name"]))
        if stream is None:
            raise RequestRefused("no-page", f"files of a trial are {', '.join(_FILES)}")
        part = await self._pools.files.run(
            read_part, self._settings.folder, number, stream, AskLog(start=-MOST_BYTES), None
        )
        body = part.data or f"{request.path_params['name']} is empty.".encode()
        return Response(body, headers=_TEXT, media_type="text/plain; charset=utf-8")

    async def log(self, request: Request) -> Response:
        """Answer with the end of a log of the experiment's."""
        name = _LOGS.get(str(request.path_params["name"]))
        if name is None:
            raise RequestRefused("no-page", f"logs are {' and '.join(_LOGS)}")
        path = ExperimentFolder(self._settings.folder).logs / name
        text = await self._pools.stores.run(_end_of, path)
        return Response(text, headers=_TEXT, media_type="text/plain; charset=utf-8")

    async def nothing(self, request: Request) -> Response:
        """Answer with an empty list: of TensorBoards, none of which is started here."""
        return _json(request, [])


def _json(request: Request, value: Any) -> Response:
    return answer(request, encoded(value))


def _results(folder: Path) -> list[dict[str, Any]]:
    listed = perform(table.TRIAL_LIST, Context(), given.ListTrials(), experiment=str(folder))
    return [result(one) for one in listed.trials if is_result(one)]


def _end_of(path: Path) -> bytes:
    """Return the end of a file; nothing of what is no file, such as a pipe or a link."""
    try:
        with open(open_regular(str(path), os.O_RDONLY), "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - MOST_BYTES))
            return file.read(MOST_BYTES)
    except OSError:
        return b""
