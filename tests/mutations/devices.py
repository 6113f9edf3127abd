"""Faults in what agents lend to trials."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

UNIT = ("tests/unit/trial_runtime/test_devices.py",)
NVML = ("tests/unit/trial_runtime/test_nvml.py",)
LIMITS = ("tests/unit/trial_runtime/test_limits.py",)
OFFERS = ("tests/unit/platforms/agents/test_offers.py",)
AGENT = ("tests/integration/gpu/test_agent.py",)

DEVICES: tuple[Mutation, ...] = (
    Mutation(
        "every-process-on-a-gpu-is-ours",
        9,
        "trials are put on a GPU on which somebody else computes",
        "trial_runtime/agent/resources/devices/nvml.py",
        "self._ours(int(each.pid))",
        "True",
        NVML,
    ),
    Mutation(
        "a-split-gpu-is-lent-whole",
        5,
        "CUDA finds no device by the id of a GPU that is split",
        "trial_runtime/agent/resources/devices/nvml.py",
        "    return mode is not None and mode[0] == n.NVML_DEVICE_MIG_ENABLE",
        "    return False",
        NVML,
    ),
    Mutation(
        "one-look-makes-a-stranger",
        8,
        "whoever lists devices keeps trials away, and each time is an event",
        "trial_runtime/agent/resources/devices/judging.py",
        "                strangers = strangers & before.get(device.id, set())",
        "                strangers = set(strangers)",
        UNIT,
    ),
    Mutation(
        "a-driver-that-hangs-is-believed",
        9,
        "trials go on to a GPU whose driver has not answered for minutes",
        "trial_runtime/agent/resources/devices/watching.py",
        "        if self._looking.under_way_s > self._slow_s:",
        "        if self._looking.under_way_s < 0:",
        UNIT,
    ),
    Mutation(
        "a-verdict-by-a-look-of-before",
        9,
        "a trial is blamed for a GPU that was lost a moment ago",
        "trial_runtime/agent/resources/devices/watching.py",
        "            return  # the waiting calls are for the look that begins now",
        "            pass",
        UNIT,
    ),
    Mutation(
        "who-has-no-gpu-sees-all",
        9,
        "a trial without devices takes one that is lent to another",
        "trial_runtime/agent/resources/devices/variables.py",
        "    if config.resources.count_gpus:",
        "    if config.resources.count_gpus and start.devices:",
        UNIT,
    ),
    Mutation(
        "a-lost-gpu-is-its-trials-fault",
        9,
        "a trial has failed for good because a GPU fell off the bus",
        "trial_runtime/agent/attempts/attempts.py",
        "if failed and attempt.stop_reason is None and self._allocation.lost_device(attempt):",
        "if not attempt:",
        AGENT,
    ),
    Mutation(
        "a-worker-goes-on-with-other-devices",
        9,
        "a warm worker computes on the devices it saw first, which others hold now",
        "trial_runtime/agent/runners/warm.py",
        "            if self._idle[index].variables == variables:",
        "            if index >= 0:",
        AGENT,
    ),
    Mutation(
        "an-offer-is-said-once",
        8,
        "a broken connection takes the news of a lost GPU, and trials go on to it",
        "trial_runtime/agent/link/head_link.py",
        "        again = now - self._offered_at >= OFFER_AGAIN_S",
        "        again = False",
        OFFERS,
    ),
    Mutation(
        "an-index-that-is-not-there-is-waited-for",
        10,
        "an experiment waits for ever for a GPU that no host has",
        "dispatcher/platforms/agents/driver.py",
        "            hopeless = hello.hopeless",
        "            hopeless = False",
        OFFERS,
    ),
    Mutation(
        "memory-without-bound",
        8,
        "a trial takes the memory of all others, and the kernel ends one of them",
        "trial_runtime/agent/resources/sampling.py",
        "            if 0 < bound < each.rss_bytes:",
        "            if bound < 0:",
        LIMITS,
    ),
    Mutation(
        "half-a-core-is-a-whole-one",
        9,
        "a trial that was given half a core takes its neighbour's half, too",
        "trial_runtime/agent/resources/cgroup.py",
        "quota = max(_LEAST_US, round(cpus * _PERIOD_US))",
        "quota = max(_PERIOD_US, round(cpus * _PERIOD_US))",
        LIMITS,
    ),
    Mutation(
        "no-cpu-controller-no-bound-of-memory",
        9,
        "on hosts that hand over memory alone, a trial fills the host's memory",
        "trial_runtime/agent/resources/cgroup.py",
        "    if not any(bounds.values()):",
        "    if not all(bounds.values()):",
        LIMITS,
    ),
    Mutation(
        "cores-are-lent-twice",
        9,
        "trials are pinned to one core while others idle",
        "trial_runtime/agent/resources/host.py",
        "            self._load[core] += share",
        "            self._load[core] += 0.0",
        LIMITS,
    ),
)
