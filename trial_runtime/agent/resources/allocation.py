"""Resources of this host for trials: offered to the head, allocated to attempts, released.

Devices are chosen by the head and watched here; cores are counted by the head and chosen here;
memory and CPU time are counted by the head and held to their bounds here, as far as this host's
kernel lets us. Things by a name are only counted.
"""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Optional

from msgspec.structs import replace

from trial_runtime import wire
from trial_runtime.agent.attempt import Attempt, Share
from trial_runtime.agent.base.loop import Timers, Watch
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.events import AgentEvents, OverBound
from trial_runtime.agent.resources import cgroup
from trial_runtime.agent.resources.devices.seen import VISIBLE
from trial_runtime.agent.resources.devices.variables import share_variables
from trial_runtime.agent.resources.devices.watching import DeviceWatch, Looks
from trial_runtime.agent.resources.host import Cores, usable_cores, usable_cpus, usable_memory_bytes
from trial_runtime.agent.resources.sampling import Asked, Key, Sampler
from trial_runtime.facts import EndReason
from trial_runtime.resource_wire import MOST_CUSTOM, MOST_DEVICES, MOST_SAMPLES

#: Weights that are remembered to be on this host's disk: the offer of them is journalled.
_LOADED = 64

_log = logging.getLogger("bequeath.agent")


class Allocation:
    """The resources of this host and their shares. Owned by the agent's loop.

    Args:
        config: of the agent.
        watch: of the agent's loop.
        timers: of the agent's loop.
        live: the attempts that have not ended.
        events: takes what is seen: attempts that are to end, and changes of the offer.
        nvml: asks the driver for devices; a test may have its own.
    """

    def __init__(
        self,
        config: AgentConfig,
        watch: Watch,
        timers: Timers,
        *,
        live: Mapping[Key, Attempt],
        events: AgentEvents,
        nvml: Optional[Looks] = None,
    ) -> None:
        self._config = config
        self._live = live
        self._events = events
        self._cores = Cores(usable_cores())
        self._cpus = usable_cpus()
        self._memory_bytes = usable_memory_bytes()
        self._cgroups: Optional[cgroup.Cgroups] = None
        self._looked_for_cgroups = False
        self._dying: list[str] = []  # control groups that are not empty yet
        self._copies = copies_parents(config)
        self._loaded: OrderedDict[str, None] = OrderedDict()  # weights, by digest, newest last
        self._cached: tuple[str, ...] = ()  # of these, the ones that were offered
        self.devices = DeviceWatch(
            config.resources,
            watch,
            timers,
            self._held,
            self._devices_changed,
            nvml=nvml,
            visible_devices=os.environ.get(VISIBLE),
        )
        self._sampled = (self.devices.seen_at, float("-inf"))  # when the newest samples were taken
        self._sampler = Sampler(watch, timers, self._measured, self._too_much)

    def start(self) -> None:
        """Watch devices and processes from now on."""
        self.devices.start()
        self._sampler.start()

    def offer(self, newest: bool = True) -> wire.OfferMessage:
        """All resources for trials, free or not: the head knows the shares of attempts.

        The weights on this host are only a hint, and change with every trial: unless ``newest``,
        the offer repeats those of the last one.
        """
        if newest:
            self._cached = tuple(self._loaded)
        custom = sorted(self._config.resources.custom.items())[:MOST_CUSTOM]
        return wire.OfferMessage(
            self.devices.offered[:MOST_DEVICES],
            self._cpus,
            self._memory_bytes,
            tuple(custom),
            self._cached,
        )

    # -- attempts ------------------------------------------------------------------------------

    def allocate(self, attempt: Attempt) -> None:
        """Settle an attempt's share, before its process starts.

        Raises:
            OSError: its memory or CPU time cannot be bounded as it should.
        """
        start = attempt.start
        cores: tuple[int, ...] = ()
        if start.cpus > 0 and hasattr(os, "sched_setaffinity"):
            cores = self._cores.allocate(attempt.key, start.cpus)
        group = ""
        wanted = start.memory_bytes > 0 or start.cpus > 0
        if wanted and self._config.trial.reuse != "inProcess":
            groups = self._find_cgroups()
            if groups is not None:
                name = f"{os.getpid()}-{start.trial}.{start.attempt}"
                group = groups.make(name, start.memory_bytes, start.cpus)
        variables = share_variables(self._config, start)
        attempt.share = Share(variables, cores, group)
        if variables or cores or group:
            attempt.session = replace(
                attempt.session,
                devices=start.devices,
                variables=variables,
                cores=cores,
                cgroup=group,
            )

    def release(self, attempt: Attempt) -> None:
        """Free the share of an attempt whose processes are gone."""
        self._cores.release(attempt.key)
        if attempt.share.cgroup:
            self._dying.append(attempt.share.cgroup)
            self._remove_groups()
        if attempt.start.devices:
            self.devices.look_now()
        self._remember(attempt)

    def killed_for_memory(self, attempt: Attempt) -> str:
        """A sentence if the kernel ended an attempt at its own memory bound; empty if not."""
        group = attempt.share.cgroup
        if not group or self._cgroups is None or not self._cgroups.struck(group):
            return ""
        bound = _mib(attempt.start.memory_bytes)
        return f"took more memory than its trialMemorySize of {bound}: ended by the kernel"

    def when_judged(self, attempt: Attempt, call: Callable[[], None]) -> None:
        """Call once it is known whether the devices of a failed attempt are lost.

        An attempt without devices is judged at once.
        """
        if attempt.start.devices:
            self.devices.after_a_look(call)
        else:
            call()

    def lost_device(self, attempt: Attempt) -> str:
        """A sentence that names a device of the attempt that is lost; empty if none is."""
        for each in attempt.start.devices:
            if self.devices.is_lost(each):
                return f"its GPU {each} was lost while it ran"
        return ""

    # -- samples -------------------------------------------------------------------------------

    def samples(self) -> Optional[wire.Samples]:
        """The newest samples of devices and attempts; None if they were returned before."""
        newest = (self.devices.seen_at, self._sampler.latest_at)
        if newest == self._sampled:
            return None
        self._sampled = newest
        troubles = {each.id: each.trouble for each in self.devices.offered}
        old_s = self.devices.old_s
        devices = tuple(
            wire.DeviceSample(
                each.id,
                each.index,
                each.name[:100],
                each.memory_bytes,
                each.used_bytes,
                each.utilization,
                each.watts,
                each.celsius,
                troubles[each.id],
                old_s,
            )
            for each in self.devices.seen
            if each.id in troubles
        )
        attempts: list[wire.AttemptSample] = []
        for each in self._live.values():
            taken = self._sampler.taken.get(each.key)
            if taken is None or len(attempts) >= MOST_SAMPLES:
                continue
            mine = each.start.devices
            attempts.append(
                wire.AttemptSample(
                    each.trial,
                    each.number,
                    round(taken.cpu, 1),
                    taken.rss_bytes,
                    mine,
                    self._gpu_bytes(mine, taken.pids),
                )
            )
        return wire.Samples(devices[:MOST_DEVICES], tuple(attempts))

    def _gpu_bytes(self, devices: tuple[str, ...], pids: frozenset[int]) -> Optional[int]:
        uses = [use for each in self.devices.seen if each.id in devices for use in each.uses]
        known = [use.nbytes for use in uses if use.pid in pids and use.nbytes is not None]
        return sum(known) if known else None

    # -- inside --------------------------------------------------------------------------------

    def _remove_groups(self) -> None:
        """Remove control groups; one with a dying process goes with the next, or at a restart."""
        groups, self._dying = self._dying, []
        for path in groups:
            try:
                if self._cgroups is not None:
                    self._cgroups.remove(path)
            except FileNotFoundError:
                pass
            except OSError:
                self._dying.append(path)

    def _remember(self, attempt: Attempt) -> None:
        """Note that the parent's files are on this host's disk now, where there is a cache."""
        digest, ended = attempt.session.restore_digest, attempt.exit
        if self._copies and digest and ended is not None and ended.code == 0:
            self._loaded[digest] = None
            self._loaded.move_to_end(digest)
            if len(self._loaded) > _LOADED:
                self._loaded.popitem(last=False)

    def _held(self) -> dict[str, bool]:
        shared = self._config.resources.trials_per_gpu > 1
        return {
            device: not shared and attempt.start.device_share == 0
            for attempt in self._live.values()
            for device in attempt.start.devices
        }

    def _devices_changed(self) -> None:
        grace_s = self._config.trial.stop_grace_s
        for attempt in self._live.values():
            lost = self.lost_device(attempt)
            if lost and attempt.exit is None:
                self._events.over_bound(OverBound(attempt, EndReason.LOST, lost, grace_s))
        self._events.offer_changed()

    def _measured(self) -> dict[Key, Asked]:
        fresh = self._config.trial.reuse != "inProcess"
        held = self._cgroups is not None and self._cgroups.memory
        return {
            each.key: Asked(
                each.pid,
                0 if held and each.share.cgroup else each.start.memory_bytes,
                each.started_at if fresh else 0.0,
            )
            for each in self._live.values()
            if each.pid and each.exit is None
        }

    def _too_much(self, key: Key, nbytes: int) -> None:
        attempt = self._live.get(key)
        if attempt is not None and attempt.exit is None:
            bound = attempt.start.memory_bytes
            text = f"took {_mib(nbytes)} of memory, and its trialMemorySize is {_mib(bound)}"
            self._events.over_bound(OverBound(attempt, EndReason.OUT_OF_MEMORY, text, 0.0))

    def _find_cgroups(self) -> Optional[cgroup.Cgroups]:
        if not self._looked_for_cgroups:
            self._looked_for_cgroups = True
            try:
                self._cgroups = cgroup.delegated()
                if self._cgroups is not None:
                    self._cgroups.remove_leftovers()
            except OSError as error:
                _log.warning("trials' memory and CPU time are not held by the kernel: %s", error)
        return self._cgroups


def copies_parents(config: AgentConfig) -> bool:
    """Whether trials here copy their parents' files to a disk of this host."""
    from trial_runtime.weights.storage.mounted import mount_of

    if config.remote is not None:
        return True
    if config.cache is None:
        return False
    mount = mount_of(config.weights_root)
    return config.cache.always or (mount is not None and mount.shared)


def _mib(nbytes: int) -> str:
    return f"{nbytes / (1 << 20):,.0f} MiB"
