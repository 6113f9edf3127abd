"""Faults in who goes where."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

PLACEMENT = ("tests/unit/core/test_placement.py",)
KEPT = ("tests/unit/core/test_reservations.py",)
PROPERTIES = ("tests/unit/core/test_placement_properties.py",)
NEVER = ("tests/unit/core/test_impossible.py",)

PLACES: tuple[Mutation, ...] = (
    Mutation(
        "a-device-is-given-twice",
        5,
        "what an attempt holds is not counted: two trials train on one GPU",
        "dispatcher/core/resources.py",
        "            self.shares[device] = self.shares.get(device, 0.0) + share",
        "            self.shares[device] = 0.0",
    ),
    Mutation(
        "shares-of-a-device-are-more-than-all-of-it",
        5,
        "three trials of 0.34 share a GPU",
        "dispatcher/core/resource_match.py",
        "_ROUNDING = 1e-9",
        "_ROUNDING = 0.05",
        PLACEMENT,
    ),
    Mutation(
        "a-device-in-trouble-is-given",
        9,
        "a trial is put beside the process of a stranger",
        "dispatcher/core/resource_match.py",
        "        if not device.trouble\n        and device.id not in beside",
        "        if device.id not in beside",
    ),
    Mutation(
        "a-gpu-that-is-cut-is-given-whole",
        5,
        "a trial is given a GPU and others its MIG devices",
        "dispatcher/core/resource_match.py",
        "for device in _whole(offer)\n        if device.memory_bytes",
        "for device in offer.devices\n        if device.memory_bytes",
    ),
    Mutation(
        "a-child-runs-in-a-foreign-domain",
        7,
        "a child starts where its parent's weights cannot be read",
        "dispatcher/core/placement.py",
        "    return home is None or home == domain_of(state, worker)",
        "    return home is None or home == domain_of(state, worker) or True",
    ),
    Mutation(
        "large-trials-are-starved",
        10,
        "nothing is ever kept: small trials take each GPU that becomes free",
        "dispatcher/core/reservations.py",
        "        if trial.passed_over < PASSED_OVER:",
        "        if trial.passed_over >= 0:",
        KEPT,
    ),
    Mutation(
        "nobody-passes-a-large-trial",
        5,
        "hosts stand idle from the moment on at which a large trial waits",
        "dispatcher/core/reservations.py",
        "        if trial.passed_over < PASSED_OVER:",
        "        if trial.passed_over < 0:",
        PROPERTIES,
    ),
    Mutation(
        "what-is-kept-is-filled-up",
        10,
        "small trials go on taking devices of the host that is kept",
        "dispatcher/core/resource_match.py",
        "    beside = kept.devices if kept is not None else set()",
        "    beside: set[str] = set()",
        KEPT,
    ),
    Mutation(
        "a-lost-host-keeps-its-devices-held",
        5,
        "after a host was lost its GPUs are taken for ever",
        "dispatcher/core/transitions/attempt.py",
        "        if needs_of(state, trial).counted:\n            recount(state, worker)\n"
        "        judge",
        "        judge",
        PLACEMENT,
    ),
    Mutation(
        "a-lost-host-never-had-anything",
        10,
        "the experiment fails while the only host with GPUs starts again",
        "dispatcher/core/resource_match.py",
        "    devices = {device.id: device for device in (*one.devices, *other.devices)}",
        "    devices = {device.id: device for device in other.devices}",
        NEVER,
    ),
    Mutation(
        "what-can-never-run-waits",
        10,
        "a trial that needs more than any host has waits for ever",
        "dispatcher/core/queue_classes.py",
        "        state.unjudged = True",
        "        state.unjudged = False",
        NEVER,
    ),
    Mutation(
        "priorities-are-the-wrong-way-round",
        5,
        "what is most urgent goes last",
        "dispatcher/core/queue_classes.py",
        "(-needs_of(state, trial).priority,",
        "(needs_of(state, trial).priority,",
        PLACEMENT,
    ),
    Mutation(
        "an-attempt-begins-that-a-power-cut-forgets",
        3,
        "two attempts of one number run, and both are believed",
        "dispatcher/engine.py",
        "or row.durable or _binds(step.actions)",
        "or row.durable",
        ("tests/unit/head/test_engine_durable.py",),
    ),
    Mutation(
        "needs-reach-the-trial",
        9,
        "a trial finds a key among its parameters that its author never wrote",
        "dispatcher/tuner_host/proposals.py",
        "read_needs(rest.pop(rules.needs_key), rules.needs)",
        "read_needs(rest[rules.needs_key], rules.needs)",
        ("tests/unit/tuner_host/test_proposals.py",),
    ),
    Mutation(
        "what-becomes-free-is-not-noticed",
        5,
        "a GPU is free, and the trial that waits for it is not looked for",
        "dispatcher/core/events/__init__.py",
        "        targets(([S.RUNNING], [S.QUEUED, S.BACKOFF, S.DELIVERING])),\n",
        "        targets(([S.RUNNING], [S.QUEUED, S.BACKOFF, S.DELIVERING])),\n"
        "        frees=False,\n",
        PLACEMENT,
    ),
    Mutation(
        "a-retry-waits-for-a-worker-that-is-none-for-it",
        10,
        "a trial that failed waits for ever for a host without GPUs",
        "dispatcher/core/placement.py",
        "        and fits_alone(state, trial, other)\n",
        "",
        PLACEMENT,
    ),
)
