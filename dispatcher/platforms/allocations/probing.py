"""Has a place looked over before the first order, and again if it was taken back meanwhile."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from dispatcher.errors import BackendError, PassingBackendError, PermanentBackendError
from dispatcher.findings import Finding, Severity
from dispatcher.platforms.allocations.allocation import Allocation, AllocationState, Allocator
from dispatcher.platforms.allocations.probe import MOST_TRIES, PlaceProbe, ProbeNeeds, sentence
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.processes.record import write_private

#: Seconds between two looks of who waits for an answer, at most.
LOOK_S = 1.0

#: How long the end of a probe is waited for that was asked for by hand (seconds).
LEAVE_S = 30.0

LOOKED_OVER = "a place is looked over before the first trial"

_log = logging.getLogger("bequeath.backends.allocations")


class Probing:
    """The probes of a service, one after another until one has answered. Thread: the pool's.

    Args:
        label: the beginning of the names of all allocations of the service.
        needs: what a place is looked over for.
        clock: monotonic seconds.
        limit_s: a longer wait for a place is one for ever (seconds).

    Attributes:
        passed: whether nothing is wrong with the place that was looked over.
        trouble: what is wrong with it, as one text.
        waits: why there is no answer yet.
        findings: all that was found.
        names: of all probes that were ordered.
    """

    def __init__(
        self,
        label: str,
        needs: ProbeNeeds,
        clock: Callable[[], float],
        limit_s: float = math.inf,
    ) -> None:
        self._label = label
        self._needs = needs
        self._clock = clock
        self._limit_s = limit_s
        self._since = clock()
        self._probe: PlaceProbe | None = None
        self._is_ordered = False
        self.passed = False
        self.trouble = ""
        self.waits = ""
        self.findings: tuple[Finding, ...] = ()
        self.names: set[str] = set()
        self._cancelled: set[str] = set()

    @property
    def is_under_way(self) -> bool:
        """Whether an answer is waited for."""
        return self._probe is not None

    def leave_out(self) -> None:
        """Take places for what is wanted, without a look: agents were there before."""
        self.passed = True

    def step(
        self,
        allocator: Allocator,
        agent: tuple[AgentConfig, Path],
        listed: Mapping[str, Allocation],
    ) -> None:
        """Order a probe, or look what became of it. Does nothing once it is known how a place is.

        Args:
            allocator: of the service.
            agent: the configuration of one that is to run there, and its folder on this machine.
            listed: what its scheduler has, by name.

        Raises:
            BackendError: its scheduler does not take the order; it is repeated at the next call.
        """
        if self.passed or self.trouble:
            return
        if self._probe is None:
            self._begin(*agent)
        assert self._probe is not None
        if not self._is_ordered:
            self._order(allocator, self._probe)
            return
        name = self._probe.name
        answer = allocator.answer(self._probe.order)
        found = self._probe.look(listed.get(name), answer, self._clock())
        self.waits = ": ".join(filter(None, (LOOKED_OVER, self._probe.waits)))
        if found is None and self._clock() - self._since > self._limit_s:
            allocator.cancel([name], 0.0)
            text = f"it has waited for its place for {self._limit_s:.0f} s: {self._probe.waits}"
            found = (Finding("probe", Severity.PROBLEM, text),)
        if found is not None:
            self._conclude(found, answer)

    def _begin(self, config: AgentConfig, home: Path) -> None:
        self._probe, self._is_ordered = PlaceProbe(self._label, config, home, self._needs), False
        self._since = self._clock()
        self.waits = LOOKED_OVER
        try:
            self._probe.lay()
        except OSError as error:
            self._drop()
            raise PermanentBackendError(
                f"cannot write the files of a probe: {error.strerror or error}",
                where=str(error.filename or home),
            ) from error

    def _order(self, allocator: Allocator, probe: PlaceProbe) -> None:
        self.names.add(probe.name)
        try:
            allocator.submit(probe.order)
        except PermanentBackendError:
            self._drop()
            raise
        self._is_ordered = True
        _log.info("%s: submitted %s", self._label, probe.name)

    def _conclude(self, findings: tuple[Finding, ...], answer: str) -> None:
        self._drop()
        if not findings and len(self.names) < MOST_TRIES:
            return  # its place was taken back: another one is asked for
        # Where so much is taken back agents can live, too: they lose their places without blame.
        text = "places of probes were taken back again and again: none was looked over"
        self.findings = findings or (Finding("probe", Severity.NOTE, text),)
        self.trouble = sentence(self.findings)
        self.passed, self.waits = not self.trouble, ""
        if self.passed and findings:
            self._keep(answer)
        for each in self.findings:
            _log.info("%s: %s: %s: %s", self._label, each.topic, each.severity.value, each.text)

    def _keep(self, answer: str) -> None:
        if self._needs.record is not None:
            try:
                self._needs.record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_private(self._needs.record, answer.encode())
            except OSError as error:
                raise PermanentBackendError(
                    f"cannot note what a place has: {error.strerror or error}",
                    where=str(self._needs.record),
                ) from error

    def _drop(self) -> None:
        if self._probe is not None:
            self._probe.close()
        self._probe = None

    def close(self, allocator: Allocator, listed: Mapping[str, Allocation]) -> None:
        """Have none left: neither one that waits still, nor one that has answered and is not seen
        to have ended. Raises ``BackendError``.

        Args:
            allocator: of the service.
            listed: what its scheduler has had last, by name.
        """
        probe, self._probe = self._probe, None
        left = {name for name in self.names if name in listed and not _has_ended(listed[name])}
        if probe is not None:
            probe.close()
            if self._is_ordered and probe.name not in listed:
                left.add(probe.name)
        if left := left - self._cancelled:
            allocator.cancel(sorted(left), 0.0)
            self._cancelled |= left


def _has_ended(allocation: Allocation) -> bool:
    return allocation.state is AllocationState.ENDED


def probe_once(
    allocator: Allocator,
    label: str,
    config: AgentConfig,
    home: Path,
    needs: ProbeNeeds,
    limit_s: float,
) -> list[Finding]:
    """Have a place looked over while somebody waits; nothing is left of it. Blocks.

    Args:
        allocator: of the service; it is closed.
        label: the beginning of the names of all its allocations.
        config: of an agent that would run there.
        home: the folder of that agent.
        needs: what the place is looked over for.
        limit_s: how long the answer may take.

    Raises:
        BackendError: its scheduler cannot be asked, or does not take the order.
    """
    probing = Probing(label, needs, time.monotonic)
    until = time.monotonic() + limit_s
    try:
        while True:
            listed = {each.name: each for each in allocator.look()}
            probing.step(allocator, (config, home), listed)
            if probing.findings:
                break
            if time.monotonic() >= until:
                text = f"no answer within {limit_s:.0f} s: {probing.waits}"
                hint = "the start of an experiment waits for as long as it takes"
                return [Finding("probe", Severity.NOTE, text, hint)]
            time.sleep(min(LOOK_S, allocator.look_every_s))
        return list(probing.findings)
    finally:
        _leave_nothing(allocator, probing)


def _leave_nothing(allocator: Allocator, probing: Probing) -> None:
    """Have all probes ended, and close the allocator; what cannot be is only logged."""
    until = time.monotonic() + LEAVE_S
    try:
        while not _is_nothing_left(allocator, probing, time.monotonic() >= until):
            time.sleep(min(LOOK_S, allocator.look_every_s))
    except BackendError as error:
        _log.warning("%s: %s", ", ".join(sorted(probing.names)), error.message)
    finally:
        allocator.close()


def _is_nothing_left(allocator: Allocator, probing: Probing, is_last: bool) -> bool:
    """Cancel what has not ended; whether all has, or, the last time, true. Raises
    ``BackendError``: nothing will help, or it was the last time."""
    try:
        listed = {each.name: each for each in allocator.look()}
        probing.close(allocator, listed)
        left = sorted(
            name for name in probing.names if name in listed and not _has_ended(listed[name])
        )
        if not left:
            allocator.clear()
    except PassingBackendError:
        if is_last:
            raise
        return False
    if left and is_last:
        _log.warning("%s is left at its scheduler", ", ".join(left))
    return is_last or not left
