"""Asks Ray for actors, lists them, and ends them, by the driver program."""

from __future__ import annotations

import base64
import contextlib
import itertools
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dispatcher.errors import BackendError, PermanentBackendError
from dispatcher.platforms.allocations.allocation import (
    Allocation,
    AllocationOrder,
    AllocationState,
    Allocator,
    Gone,
)
from dispatcher.platforms.allocations.probe import text_of
from dispatcher.platforms.bringing import bringing_of
from dispatcher.platforms.clusters.nodes import (
    LookPace,
    config_on_node,
    make_home,
    unwritable,
    variables_on_node,
)
from dispatcher.platforms.given import ServiceGiven
from dispatcher.platforms.ray.conversation import Conversation, conversation_about
from dispatcher.platforms.ray.section import RayServiceConfig
from dispatcher.platforms.ray.waiting import reason_of_autoscaler, reason_of_wait
from trial_runtime.agent.config import AgentConfig, encode_config

#: Seconds between two looks while something is expected to change, and otherwise: a look is one
#: request to Ray's head. That an agent begins, or is silent, is heard without it.
QUICK_LOOK_S, SLOW_LOOK_S = 0.5, 5.0

#: So long after an order something is expected to change (seconds).
QUICK_FOR_S = 30.0

#: An actor whose agent has ended stays for so long (seconds), so that heads can ask how it ended.
LINGER_S = 20.0

#: A cluster of our own that no head uses stays for as long as an agent does, and this (seconds).
LEASE_BEYOND_S = 10.0

_log = logging.getLogger("bequeath.backends.ray")


class RayAllocator(Allocator):
    """See :class:`~dispatcher.platforms.allocations.allocation.Allocator`.

    Args:
        service: the service and its surroundings.
        conversation: with a driver.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        service: ServiceGiven[RayServiceConfig],
        conversation: Conversation | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._service = service
        self._section = section = service.section
        self._homes = section.homes(service.experiment, service.folder)
        self._clock = clock
        self._bringing = bringing_of(section, service.archives)
        if conversation is None:
            log, local = service.folder / "logs" / "ray-driver.log", service.folder / "ray"
            conversation = conversation_about(section, log, local=local / service.label)
        self._driver = conversation
        self._met = False  # whether Ray has ever answered
        self._nodes = 1  # of each allocation, as the newest configuration has it
        self._pace = LookPace(QUICK_LOOK_S, SLOW_LOOK_S, QUICK_FOR_S, clock)

    @property
    def look_every_s(self) -> float:  # type: ignore[override]  # read before each pause
        """Seconds until the next look: few while something is expected to change."""
        return self._pace.every_s

    def submit(self, order: AllocationOrder) -> None:
        """See :meth:`Allocator.submit`. The driver asks Ray for the name first."""
        section, home = self._section, self._homes / order.config.worker
        variables = variables_on_node(order, section, brings=self._bringing is not None)
        try:
            make_home(home)
            begins = list(order.arguments)
            if self._bringing is not None and order.config.probe is None:
                begins = [self._bringing.begin]
        except OSError as error:
            raise unwritable(error, home) from error
        self._pace.hurry()
        self._nodes = order.nodes
        self._ask(
            "submit",
            name=order.name,
            options=actor_options(section),
            order={
                "name": order.name,
                "home": str(home),
                "config": self._carried(order.config),
                "python": section.trial_python or "",
                "arguments": begins,
                "environment": variables,
                "log": str(home / "logs" / "agent.log"),
                "wall_s": section.wall_s,
                "grace_s": order.config.trial.stop_grace_s,
                "linger_s": LINGER_S,
                "nodes": order.nodes,
                "each_ends": order.config.probe is not None,
            },
            lease_s=order.config.head_grace_s + order.config.trial.stop_grace_s + LEASE_BEYOND_S,
        )
        _log.info("%s: asked for", order.name)

    def look(self) -> Sequence[Allocation]:
        """See :meth:`Allocator.look`."""
        answer = self._ask("look", prefix=f"{self._service.label}-")
        reason = ""
        if "nodes" in answer:
            reason = reason_of_wait(
                self._section.demand, answer["nodes"], answer["free"], self._nodes
            )
            more = reason_of_autoscaler(self._section.demand, answer["autoscaler"])
            reason = f"{reason}; {more}" if more else reason
        allocations = [allocation_of(row, reason) for row in answer["rows"]]
        self._pace.settle(all(x.state is not AllocationState.UNKNOWN for x in allocations))
        if self._bringing is not None:
            self._bringing.look()
        for each in allocations:
            if each.state is AllocationState.ENDED:
                self._remove_config(each.name)
        return allocations

    def tell(self, name: str, config: AgentConfig) -> None:
        """See :meth:`Allocator.tell`: its actor writes the file anew."""
        self._nodes = config.nodes
        self._ask("tell", name=name, config=self._carried(config))

    def cancel(self, names: Sequence[str], grace_s: float) -> None:
        """See :meth:`Allocator.cancel`."""
        self._pace.hurry()
        self._ask("cancel", names=list(names), grace_s=grace_s)

    def clear(self) -> None:
        """See :meth:`Allocator.clear`: a cluster of our own ends."""
        if self._section.starts:
            self._ask("end")

    def answer(self, order: AllocationOrder) -> str:
        """See :meth:`Allocator.answer`."""
        return text_of(order)

    def close(self) -> None:
        """See :meth:`Allocator.close`: the driver ends, and no actor."""
        self._driver.close()

    # -- parts -----------------------------------------------------------------------------------

    def _ask(self, method: str, **arguments: object) -> Any:
        """Ask the driver. A cluster that has never answered is not the one that is meant."""
        try:
            answer = self._driver.ask(method, **arguments)
        except PermanentBackendError:
            raise
        except BackendError as error:
            if self._met:
                raise
            raise PermanentBackendError(
                error.message, hint=error.hint or "see 'address'", where=error.where
            ) from error
        self._met = True
        return answer

    def _carried(self, config: AgentConfig) -> str:
        home = self._homes / config.worker
        there = config_on_node(config, self._service, home, self._bringing)
        return base64.b64encode(encode_config(there)).decode()

    def _remove_config(self, name: str) -> None:
        """Remove what an agent that was killed has left: it holds keys."""
        left = (self._homes.glob(f"*/{name}{own}.config") for own in ("", ".rank*"))
        for path in itertools.chain.from_iterable(left):
            with contextlib.suppress(OSError):
                path.unlink()


def actor_options(section: RayServiceConfig) -> dict[str, Any]:
    """The options of an actor, as Ray takes them."""
    memory = {} if section.memory is None else {"memory": section.memory}
    return {
        **section.options,
        "num_cpus": section.cpus,
        "num_gpus": section.gpus,
        "resources": dict(section.actor_resources),
        **memory,
    }


def allocation_of(row: Mapping[str, Any], reason: str) -> Allocation:
    """An actor, as the driver describes it.

    Args:
        row: what the driver says.
        reason: why those wait that do.
    """
    state = AllocationState(row["state"])
    if state is AllocationState.ENDED:
        gone = None if row["gone"] is None else Gone(row["gone"])
        return Allocation(row["name"], state, row["reason"], gone=gone)
    if state is AllocationState.WAITING:
        return Allocation(row["name"], state, reason, row["waiting_s"])
    return Allocation(
        row["name"], state, ends_in_s=row.get("ends_in_s"), place=row.get("place", "")
    )
