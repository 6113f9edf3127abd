"""What an agent offers and measures, on its way to the core and to people."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.resources import Device, Offer
from dispatcher.platforms.agents.translation import offer_of
from tests.unit.platforms.local.test_gaps import Scene
from trial_runtime import wire
from trial_runtime.agent.link import head_link
from trial_runtime.agent.link.head_link import HeadLink

LOCAL = WorkerId("local")


def told(trouble: str = "") -> wire.OfferMessage:
    device = wire.DeviceMessage("GPU-a", 3, "H100", 80, trouble=trouble)
    return wire.OfferMessage((device,), 8.0, 64, (("licence", 2.0),))


def offer(trouble: str = "") -> Offer:
    device = Device("GPU-a", 3, "H100", 80, trouble=trouble)
    return Offer((device,), 8.0, 64, (("licence", 2.0),))


class Offering(Scene):
    """Both ends of the line, with an agent that has something to offer."""

    def __init__(self, folder: Path) -> None:
        self.offer = told()
        super().__init__(folder)
        self.agent = HeadLink(
            self.line,  # type: ignore[arg-type]
            self.agent._config,
            self.outbox,
            lambda: self.held,
            None,
            lambda _newest: self.offer,
        )
        self.agent.heartbeat(0, {})
        self.joined = self.carry()[0]


@pytest.fixture
def scene(tmp_path: Path) -> Offering:
    return Offering(tmp_path)


def test_an_offer_comes_with_the_hello_and_when_it_changes(scene: Offering) -> None:
    (joined,) = scene.joined
    assert isinstance(joined, e.WorkerJoined)
    assert joined.offer == offer()
    scene.offer = told("is lost")
    scene.agent.tell_offer()
    assert scene.carry()[0] == [e.WorkerOffers(LOCAL, offer("is lost"))]
    scene.agent.tell_offer()
    assert scene.carry()[0] == []


def test_one_that_was_lost_on_the_way_is_said_again(
    scene: Offering, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.offer = told("is lost")
    scene.agent.tell_offer()
    scene.line.up.clear()
    scene.agent.heartbeat(0, {})
    assert scene.carry()[0] == []
    monkeypatch.setattr(head_link, "OFFER_AGAIN_S", 0.0)
    scene.agent.heartbeat(0, {})
    assert scene.carry()[0] == [e.WorkerOffers(LOCAL, offer("is lost"))]
    scene.agent.heartbeat(0, {})
    assert scene.carry()[0] == []  # the head knows it


def test_samples_are_kept_until_newer_ones_come(scene: Offering) -> None:
    samples = wire.Samples((wire.DeviceSample("GPU-a"),), (wire.AttemptSample(1, 1, 50.0),))
    scene.agent.heartbeat(1, {}, samples)
    scene.agent.heartbeat(1, {})
    assert scene.carry()[0] == []  # and nothing of them is an event
    assert scene.head.statistics().samples == samples


def test_trouble_without_hope_is_no_mere_waiting(scene: Offering) -> None:
    scene.agent.tell_trouble("gpuIndices names 7", "devices", hopeless=True)
    scene.agent.incarnation = "another"
    scene.agent.greet()
    (lost,) = scene.carry()[0]
    assert lost == e.WorkerLost(LOCAL, "gpuIndices names 7", hopeless=True, kept_out=False)
    scene.agent.tell_trouble("", "devices")
    assert [type(each) for each in scene.carry()[0]] == [e.WorkerJoined]


def test_what_the_core_gives_is_ordered() -> None:
    action = a.StartAttempt(
        LOCAL, TrialId(1), 1, "{}", devices=("GPU-a",), cpus=2.0, memory_bytes=5, device_share=0.5
    )
    frame = wire.HeadFrame(1, [wire.encode_order(action)])
    assert wire.decode_orders(wire.from_head(wire.frame(frame)), LOCAL) == [action]
    assert offer_of(None) is None


def test_more_devices_than_a_host_has_are_not_read() -> None:
    many = wire.OfferMessage(tuple(wire.DeviceMessage(f"GPU-{n}") for n in range(257)))
    frame = wire.frame(wire.AgentFrame(1, [wire.Offers("a", many)]))
    with pytest.raises(wire.WireError):
        wire.from_agent(frame)
