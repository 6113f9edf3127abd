"""Runs of a project of CLOVA NSML: asked for and listed by its API. How they are, they say
themselves in files (:mod:`~dispatcher.platforms.nsml.run_files`): the API does not say it."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from dispatcher.http_services.client import HttpClient
from dispatcher.http_services.errors import NotThere, Unreachable
from dispatcher.http_services.naver import GatewaySigner
from dispatcher.http_services.token_bucket import TokenBucket
from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.http_jobs.credentials import address_of, secret_of
from dispatcher.platforms.http_jobs.jobs import JobOrder, JobService, ServiceJob, States, rows_in
from dispatcher.platforms.http_jobs.pages import Pages
from dispatcher.platforms.nsml.in_run import ENDED, RUNS, STOPPED, TAKEN
from dispatcher.platforms.nsml.run_files import PROGRAM, RunFiles
from dispatcher.platforms.nsml.section import NsmlSection

#: Runs on one page of the list.
PAGE = 500

#: Requests that are sent at once, and in a second: each run of the project is asked about once.
BURST, PER_S = 50.0, 10.0

#: Seconds between two words of a run, and after which it is lost: a share may show them late.
BEAT_S, SILENT_S = 10.0, 180.0

#: Words for runs beside their own.
WAITS, DONE, FAILED, LOST = "waits", "done", "failed", "lost"

_NOTE = re.compile(r"bequeath ([\w.-]+) ([0-9a-f]{32})")


class NsmlJobs(JobService):
    """See :class:`~dispatcher.platforms.http_jobs.jobs.JobService`. NSML numbers its runs itself:
    the note of one says whose it is."""

    states: ClassVar[States] = {
        WAITS: AllocationState.WAITING,
        RUNS: AllocationState.RUNNING,
        DONE: Gone.FINISHED,
        FAILED: Gone.FAILED,
        STOPPED: Gone.CANCELLED,
        TAKEN: Gone.PREEMPTED,
        LOST: Gone.NODE_LOST,
    }
    refuses_names = ends_at_wall = False
    rank_variable = "NSML_RANK"

    def __init__(self, section: NsmlSection, label: str) -> None:
        super().__init__(client_of(section))
        self._section, self._label = section, label
        self._files, self._pages = RunFiles(section), Pages(self._page)
        self._size = PAGE  # of a page, as the service has it
        self._notes: dict[str, str] = {}  # of runs
        self._seen_at: dict[str, float] = {}  # when a run was listed first
        self._runs: dict[str, str] = {}  # the oldest one of each name
        self._began: dict[str, float] = {}

    def create(self, order: JobOrder) -> None:
        """See :meth:`JobService.create`."""
        self._files.lay()
        there = self._files.there
        arguments = [f"{there}/{PROGRAM}", f"{there}/{order.name}", f"{BEAT_S}"]
        arguments += shlex.split(order.script.removeprefix("exec "))
        body = body_of(order, self._section)
        body["command"] = shlex.join([self._section.python, *arguments])
        asked, path = f"create the run {order.name!r}", f"/projects/{self._section.project}/runs"
        self.client.ask("POST", path, asked=asked, body=body)

    def list(self) -> Sequence[ServiceJob]:
        """See :meth:`JobService.list`: those of the project whose notes are ours."""
        jobs = self._pages.look()
        self._files.look()
        first = [x for x in jobs if int(x.id) == int(self._runs.get(x.name, x.id))]
        return [self._with_state(job) for job in first]  # one that is there twice ends by itself

    def find(self, name: str) -> ServiceJob | None:
        """See :meth:`JobService.find`: by its number, once that is known."""
        if name not in self._runs:
            Pages(self._page).look()  # which learns the numbers of all names
        self._files.look()
        with contextlib.suppress(NotThere):
            run = self._runs.get(name)
            job = None if run is None else self._read(self._detail(run))
            return None if job is None else self._with_state(job)
        del self._runs[name]
        return None

    def stop(self, job: ServiceJob, grace_s: float) -> None:
        """See :meth:`JobService.stop`: by a file."""
        self._files.stop(job.name, grace_s)

    def _page(self, token: str) -> tuple[Sequence[ServiceJob], str]:
        """A page of the list, and the number of the next one."""
        number, asked = int(token or 1), "list runs"
        query = {"page": number, "pageSize": PAGE}
        answer = self.client.ask("GET", "/projects/runs", asked=asked, query=query)
        rows = rows_in(answer, "runList", asked=asked)
        self._size = len(rows) if number == 1 else self._size
        mine = [row for row in rows if row.get("projectId") == self._section.project]
        jobs = [job for job in map(self._read, mine) if job is not None]
        is_last = not rows or number * self._size >= int(answer.fields.get("totalCount") or 0)
        return jobs, "" if is_last else str(number + 1)

    def _read(self, row: Mapping[str, Any]) -> ServiceJob | None:
        """A run by its row; None: it is somebody else's. Its reason is NSML's word for it."""
        run = str(row.get("runName"))
        if run not in self._notes:
            with contextlib.suppress(NotThere):  # it has gone meanwhile
                whole = row if "note" in row else self._detail(run)
                self._notes[run] = str(whole.get("note") or "")
                self._seen_at[run] = self.times.now()
        note = _NOTE.fullmatch(self._notes.get(run, ""))
        if note is None or not note[1].startswith(f"{self._label}-"):
            return None
        self._runs[note[1]] = min(self._runs.get(note[1], run), run, key=int)
        status, created = str(row.get("status")), self._seen_at[run]
        return ServiceJob(note[1], f"{int(run):012}", WAITS, status, created, mark=note[2])

    def _with_state(self, job: ServiceJob) -> ServiceJob:
        """A run with the state that its file has."""
        state, age_s = self._files.of(job.name)
        text, has_gone = f"NSML says {job.reason!r}", job.reason in self._section.ended_states
        if not state and job.name in self._files.stopped:
            return job._replace(word=STOPPED, reason="it was stopped, and ends when it begins")
        if not state:
            return job._replace(word=FAILED if has_gone else WAITS, reason=text)
        word, seconds, code = state["word"], float(state["seconds"]), state["code"]
        began = self.times.now() - age_s - seconds
        began = self._began[job.name] = min(began, self._began.get(job.name, began))
        job = job._replace(word=word, reason="", started_at=began)
        if code is None:
            is_lost, text = has_gone or age_s > SILENT_S, f"it says nothing any more; {text}"
            return job._replace(word=LOST, reason=text) if is_lost else job
        text = f"exit code {code}" if word == ENDED else "somebody had it stopped"
        word = word if word != ENDED else FAILED if code else DONE
        return job._replace(word=word, reason=text, ended_at=began + seconds)

    def _detail(self, run: str) -> Mapping[str, Any]:
        path = f"/projects/{self._section.project}/runs/{run}"
        row = self.client.ask("GET", path, asked=f"read the run {run}").fields
        if str(row.get("runName")) != run:  # an error, perhaps: nobody's note is forgotten for it
            raise Unreachable(f"cannot read the run {run}: the answer has no run", where=self.where)
        return row


def client_of(section: NsmlSection) -> HttpClient:
    """The client of a section's service. Raises ``PermanentBackendError``."""
    keys = (section.access_key, section.secret_key, section.api_key)
    access, secret, api = (partial(secret_of, reference) for reference in keys)
    signer = GatewaySigner(access, secret, api)
    address, bucket = address_of(section, section.address), TokenBucket(BURST, PER_S)
    client = HttpClient(address, signer, bucket=bucket)
    signer.now = client.times.now
    return client


def body_of(order: JobOrder, section: NsmlSection) -> dict[str, Any]:
    """A run as NSML takes it, without its command. Pure."""
    storages = list(section.block_storages)
    return {
        "gpuSvrCode": section.gpu_server,
        "imagePath": section.image,
        "imageType": section.image_type,
        "nodeCount": order.nodes,
        "note": f"bequeath {order.name} {order.mark}",
        **({"blockStorageNoList": storages} if storages else {}),
    }
