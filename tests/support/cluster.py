"""Hosts with GPUs for tests of the core: trials by hand with needs, hosts that offer devices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dispatcher import core
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import WorkerId
from dispatcher.core.model import EndReason, TrialState
from dispatcher.core.resources import Device, Needs, Offer
from tests.support.scene import Scene, of_kind

GB = 1 << 30


def gpus(host: str, count: int, *, memory_gb: int = 80) -> tuple[Device, ...]:
    """``GPU-<host>-0`` and so on."""
    return tuple(
        Device(f"GPU-{host}-{index}", index, "a GPU", memory_gb * GB) for index in range(count)
    )


def mig(gpu: Device, count: int, *, memory_gb: int = 10) -> tuple[Device, ...]:
    """The MIG devices of a GPU."""
    return tuple(
        Device(f"MIG-{gpu.id}-{index}", gpu.index, "a part", memory_gb * GB, parent=gpu.id)
        for index in range(count)
    )


class Cluster(Scene):
    """An experiment whose hosts offer what they are given here; a number means so many GPUs.

    Trials are submitted by hand: ``submit(gpus=2)`` returns the trial's number.
    """

    def __init__(
        self,
        hosts: dict[str, int | Offer | None],
        *,
        slots: int = 1000,
        each: int = 64,
        workers: int = 0,
        **more: Any,
    ) -> None:
        # The tuner's only request stays open: all trials here are submitted by hand.
        super().__init__(begin=False, slots=slots, max_trials=1, **more)
        self.settings = replace(self.settings, workers=workers or len(hosts))
        self.state = core.new_state(self.settings)
        self.say(e.HeadStarted(1), e.TunerHostReady())
        for name, offer in hosts.items():
            self.join(name, offer, each)

    def join(
        self, name: str, offer: int | Offer | None, slots: int = 64, **more: Any
    ) -> list[a.Action]:
        if isinstance(offer, int):
            offer = Offer(gpus(name, offer))
        return self.say(e.WorkerJoined(WorkerId(name), slots, offer=offer, **more))

    def submit(self, needs: Needs | None = None, *, parent: int | None = None, **more: Any) -> int:
        if more:
            needs = Needs(**more)
        restore = None if parent is None else f"t/{parent}"
        trial = self.state.next_id
        self.say(e.TrialSubmitted("{}", f"t/{trial}", restore, needs))
        return trial

    def offers(self, name: str, offer: Offer) -> list[a.Action]:
        return self.say(e.WorkerOffers(WorkerId(name), offer))

    def leave(self, trial: int) -> list[a.StartAttempt]:
        """The trial ends and is delivered; the attempts that began then."""
        out = self.exit(trial, EndReason.FINISHED, self.trial(trial).attempt, files=True)
        out += self.deliver(trial)
        return of_kind(out, a.StartAttempt)

    def where(self, trial: int) -> str | None:
        """The host on which it runs."""
        record = self.trial(trial)
        return record.worker if record.state is TrialState.RUNNING else None

    def held(self, trial: int) -> tuple[str, ...]:
        """The devices that it holds, without their prefix."""
        return tuple(device.removeprefix("GPU-") for device in self.trial(trial).devices)
