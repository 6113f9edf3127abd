"""Asks Slurm for jobs, lists them, and cancels them: one command each, for all workers together."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from dispatcher.errors import BackendError, PassingBackendError, PermanentBackendError
from dispatcher.platforms.allocations.allocation import (
    Allocation,
    AllocationOrder,
    AllocationState,
    Allocator,
    Gone,
)
from dispatcher.platforms.allocations.probe import text_of
from dispatcher.platforms.bringing import bringing_of, unfit_path, why_unfit
from dispatcher.platforms.clusters.nodes import (
    LookPace,
    config_on_node,
    make_home,
    unwritable,
    variables_on_node,
)
from dispatcher.platforms.given import ServiceGiven
from dispatcher.platforms.slurm import script
from dispatcher.platforms.slurm.accounting import Vanished
from dispatcher.platforms.slurm.bursts import MOST, Bursts
from dispatcher.platforms.slurm.commands import CommandEnd, CommandLine
from dispatcher.platforms.slurm.complaints import complaint, is_about_arrays, is_about_ended
from dispatcher.platforms.slurm.listing import Job, list_command, read_list
from dispatcher.platforms.slurm.login_node import command_line_of
from dispatcher.platforms.slurm.section import SlurmServiceConfig
from dispatcher.platforms.slurm.states import allocation_of, can_never_be, has_ended, judge
from trial_runtime.agent.config import AgentConfig, encode_config
from trial_runtime.agent.processes.record import write_private

#: Seconds between two looks while something is expected to change, and otherwise. A controller
#: serves all users of a cluster; that an agent begins, or is silent, is heard without it.
QUICK_LOOK_S, SLOW_LOOK_S = 1.0, 10.0

#: So long after an order something is expected to change (seconds).
QUICK_FOR_S = 30.0

#: A job that waits for so long (seconds) for a reason that no time mends is given up. Somebody may
#: be changing what is allowed.
NEVER_S = 600.0

#: Slurm ends what it has cancelled by force after its own ``KillWait``, which is 30 s as shipped. A
#: longer grace begins with a signal alone.
KILL_WAIT_S = 30.0


#: The wall time of a probe: modules on a cold file system take long to import (seconds).
PROBE_S = 600.0


class SlurmAllocator(Allocator):
    """See :class:`~dispatcher.platforms.allocations.allocation.Allocator`.

    Args:
        service: the service and its surroundings.
        shell: runs commands where Slurm is; None: as the section says.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        service: ServiceGiven[SlurmServiceConfig],
        shell: CommandLine | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._service = service
        self._section = service.section
        self._folder = service.section.homes(service.experiment, service.folder)
        self._bringing = bringing_of(self._section, service.archives)
        self._shell = command_line_of(service.section) if shell is None else shell
        self._clock = clock
        self._jobs: dict[str, list[Job]] = {}  # by name, as listed last
        self._chosen: dict[str, Job] = {}  # of these the one that is the allocation
        self._homes: dict[str, Path] = {}  # of the workers whose allocations were seen here
        self._doubtful: set[str] = set()  # names that may have been taken
        self._cancelled: set[str] = set()  # names, of jobs that were listed then
        self._bursts = Bursts(self._folder / ".bursts", service.label)
        self._has_arrays = True
        ask = lambda command: self._run(command).out  # noqa: E731
        self._vanished = Vanished(ask, self._bursts, lambda: self._shell.user, clock)
        self._looked = False
        self._never_since: dict[str, tuple[str, float]] = {}
        self._pace = LookPace(QUICK_LOOK_S, SLOW_LOOK_S, QUICK_FOR_S, clock)

    @property
    def look_every_s(self) -> float:  # type: ignore[override]  # read before each pause
        """Seconds until the next look: few while something is expected to change."""
        return self._pace.every_s

    # -- orders ----------------------------------------------------------------------------------

    @property
    def most_at_once(self) -> int:  # type: ignore[override]  # read at each look
        """Orders in one array; 1 where the cluster has none."""
        return MOST if self._has_arrays else 1

    def submit(self, order: AllocationOrder) -> None:
        """See :meth:`Allocator.submit`. Where an answer was lost the list is asked first."""
        if not self._not_taken([order]):
            return
        home = self._home_of(order.config)
        with self._files_of([order]):
            command = script.submit_command(
                self._section_of(order),
                order.name,
                folder=str(home),
                log=str(home / script.AGENT_LOG),
                nodes=order.nodes,
            )
            batch = script.batch_script(
                self._agent(order),
                stem=str(home / order.name),
                prolog=self._section.prolog or "",
                title=f"bequeath: {order.config.worker} of experiment {self._service.experiment}",
            )
            self._run(command, stdin=batch)

    def submit_many(self, orders: Sequence[AllocationOrder]) -> None:
        """See :meth:`Allocator.submit_many`: one array, whose tasks differ by their files."""
        orders = self._not_taken(orders)
        if len(orders) < 2:
            for order in orders:
                self.submit(order)
            return
        with self._files_of(orders):
            homes = {order.name: self._home_of(order.config) for order in orders}
            try:
                name, stems = self._bursts.lay_down(homes)
            except OSError as error:
                raise unwritable(error, self._folder) from error
            command = script.submit_command(
                self._section,
                name,
                folder=str(self._folder),
                log="/dev/null",
                nodes=orders[0].nodes,
                tasks=len(orders),
            )
            batch = script.array_script(
                self._agent(orders[0]),
                stems=str(stems),
                prolog=self._section.prolog or "",
                title=f"bequeath: workers of experiment {self._service.experiment}",
            )
            try:
                self._run(command, stdin=batch)
            except PermanentBackendError as error:
                self._bursts.forget(name)
                if not is_about_arrays(error):
                    raise
                self._has_arrays = False
                raise PassingBackendError(error.message, where=error.where) from error

    def _section_of(self, order: AllocationOrder) -> SlurmServiceConfig:
        """The section of its order: a probe takes a moment, and fits where nothing else does."""
        wall_s = self._section.wall_time
        if order.config.probe is None or (wall_s is not None and wall_s <= PROBE_S):
            return self._section
        return self._section.model_copy(update={"wall_time": PROBE_S})

    def _agent(self, order: AllocationOrder) -> list[str]:
        is_agent = order.config.probe is None
        begins = [self._bringing.begin] if self._bringing and is_agent else order.arguments
        agent = [self._section.python or sys.executable, *begins]
        return script.on_all_nodes(agent, order.nodes, self._section.cpus)

    def _not_taken(self, orders: Sequence[AllocationOrder]) -> list[AllocationOrder]:
        """Return those to be asked for: not those whose answer was lost, and which are listed."""
        doubtful = self._doubtful.intersection(order.name for order in orders)
        if doubtful:
            taken = {job.name for job in self._list()} & doubtful
            self._doubtful -= taken
            orders = [order for order in orders if order.name not in taken]
        return list(orders)

    @contextlib.contextmanager
    def _files_of(self, orders: Sequence[AllocationOrder]) -> Iterator[None]:
        """Lay down the files of orders that are given within; they go again if none was taken."""
        names = {order.name for order in orders}
        self._pace.hurry()
        try:
            for order in orders:
                self._write(order, self._home_of(order.config))
            yield
        except PermanentBackendError:
            for name in names:
                self._remove_files(name)
            raise
        except BackendError:
            self._doubtful |= names
            raise
        self._doubtful -= names

    def _write(self, order: AllocationOrder, home: Path) -> None:
        """Write the files of an order."""
        self._homes[order.name] = home
        try:
            make_home(home)
            variables = variables_on_node(order, self._section, brings=self._bringing is not None)
            write_private(_variables_path(home, order.name), script.variables_script(variables))
            write_private(
                _config_path(home, order.name), encode_config(self._there(order.config, home))
            )
        except OSError as error:
            raise unwritable(error, home) from error

    def _home_of(self, config: AgentConfig) -> Path:
        return self._folder / config.worker

    def _there(self, config: AgentConfig, home: Path) -> AgentConfig:
        config = replace(config, rank_variable=script.RANK_VARIABLE)
        return config_on_node(config, self._service, home, self._bringing)

    def tell(self, name: str, config: AgentConfig) -> None:
        """See :meth:`Allocator.tell`: the file lies where its agent looks again."""
        home = self._home_of(config)
        self._homes[name] = home
        path = _config_path(home, name)
        if path.exists():
            try:
                write_private(path, encode_config(self._there(config, home)))
            except OSError as error:
                text = f"cannot be written: {error.strerror or error}"
                raise PassingBackendError(text, where=str(path)) from error

    # -- looks -----------------------------------------------------------------------------------

    def look(self) -> Sequence[Allocation]:
        """See :meth:`Allocator.look`: one list, of our own user's jobs. How one ended that is not
        listed any more is asked of accounting, if there is any."""
        jobs = self._list()
        listed = judge(jobs)
        missing = self._missing(listed.jobs)
        self._jobs = {name: [j for j in jobs if j.name == name] for name in listed.jobs}
        self._chosen = listed.jobs
        allocations = [self._judged(each) for each in listed.allocations]
        unwanted = [job.id for job in listed.surplus]
        for each in allocations:
            if each.gone is Gone.NEVER:
                unwanted += [job.id for job in self._jobs[each.name] if not has_ended(job)]
        if unwanted:
            self._cancel_by(unwanted)
        allocations = [self._explained(each) for each in (*allocations, *missing)]
        for name in [each.name for each in allocations if each.state is AllocationState.ENDED]:
            if all(has_ended(job) for job in self._jobs.get(name, [])):
                self._remove_files(name)
        self._pace.settle(all(_is_settled(each) for each in allocations))
        if self._bringing is not None:
            self._bringing.look()
        return allocations

    def _missing(self, listed: Mapping[str, Job]) -> list[Allocation]:
        """Find what was listed before, or is known by its files alone, and is listed no more. What
        we have cancelled may go without a word."""
        before = {n: job for n, job in self._chosen.items() if n not in self._cancelled}
        self._cancelled &= listed.keys()
        self._vanished.compare(before, listed)
        if self._looked:
            return self._vanished.allocations()
        self._looked = True
        for path in self._folder.glob(f"*/{self._service.label}-*.config"):
            self._homes.setdefault(path.stem, path.parent)
        ended = self._vanished.ends_of(self._homes.keys() - listed.keys() - self._doubtful)
        return [allocation_of(job) for job in ended.values()]

    def _explained(self, allocation: Allocation) -> Allocation:
        """An allocation with what its node has said of why it can run no agent, or itself."""
        name, home = allocation.name, self._homes.get(allocation.name)
        if self._bringing is None or home is None or allocation.gone is not Gone.FAILED:
            return allocation
        text = why_unfit(_config_path(home, name))
        return dataclasses.replace(allocation, reason=text or allocation.reason)

    def _judged(self, allocation: Allocation) -> Allocation:
        """An allocation that can never be had, once that is certain; or itself."""
        name, reason, now = allocation.name, allocation.reason, self._clock()
        if allocation.state is not AllocationState.WAITING or not can_never_be(reason):
            self._never_since.pop(name, None)
            return allocation
        before, since = self._never_since.get(name, (reason, now))
        if before != reason:
            since = now
        self._never_since[name] = reason, since
        if now - since < NEVER_S:
            return allocation
        return Allocation(name, AllocationState.ENDED, reason, gone=Gone.NEVER)

    def _list(self) -> list[Job]:
        """All jobs of this service, each by the name of its order."""
        text = self._run(list_command(self._shell.user)).out
        jobs = list(read_list(text, f"{self._service.label}-"))
        self._bursts.sweep(jobs, self._clock())
        return self._bursts.tell_apart(jobs)

    # -- ends ------------------------------------------------------------------------------------

    def cancel(self, names: Sequence[str], grace_s: float) -> None:
        """See :meth:`Allocator.cancel`. Slurm's own force comes after its own ``KillWait``."""
        self._pace.hurry()
        if any(name not in self._jobs for name in names):  # ordered a moment ago, perhaps
            for job in self._list():
                self._jobs.setdefault(job.name, [job])
        self._cancelled.update(name for name in names if name in self._chosen)
        soon: list[str] = []
        gently: list[str] = []
        for name in names:
            for job in self._jobs.get(name, []):
                if not has_ended(job):
                    runs = job.state == "RUNNING" and grace_s > KILL_WAIT_S
                    (gently if runs else soon).append(job.id)
        if gently:
            self._cancel_by(["--batch", "--signal=TERM", *gently])
        if soon:
            self._cancel_by(soon)

    def _cancel_by(self, arguments: Sequence[str]) -> None:
        answer = self._shell.run(["scancel", *arguments])
        if answer.code and not is_about_ended(answer.err):
            raise complaint("scancel", answer.code, answer.err, where="slurm")

    def answer(self, order: AllocationOrder) -> str:
        """See :meth:`Allocator.answer`."""
        return text_of(order)

    def clear(self) -> None:
        """See :meth:`Allocator.clear`: the files of arrays."""
        self._bursts.clear()

    def close(self) -> None:
        """See :meth:`Allocator.close`."""
        self._shell.close()

    # -- parts -----------------------------------------------------------------------------------

    def _run(self, command: Sequence[str], *, stdin: bytes = b"") -> CommandEnd:
        answer = self._shell.run(command, stdin=stdin)
        if answer.code:
            raise complaint(command[0], answer.code, answer.err, where="slurm")
        return answer

    def _remove_files(self, name: str) -> None:
        """Remove the files of a job that has ended, or never was: they hold keys."""
        home = self._homes.pop(name, None)
        if home is not None:
            config = _config_path(home, name)
            for path in (config, _variables_path(home, name), unfit_path(config)):
                with contextlib.suppress(OSError):
                    path.unlink()


def _is_settled(allocation: Allocation) -> bool:
    waits = allocation.state is AllocationState.WAITING and allocation.reason != ""
    return waits or allocation.state in (AllocationState.RUNNING, AllocationState.ENDED)


def _config_path(home: Path, name: str) -> Path:
    return home / f"{name}.config"


def _variables_path(home: Path, name: str) -> Path:
    return home / f"{name}.variables"
