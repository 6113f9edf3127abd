"""What users and fate do to a world: when, how often and to whom, by the world's dice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dispatcher.channel import PeerMessage
from dispatcher.core import events as e
from dispatcher.core.model import State, TrialState
from tests.support.agents import LOST_S, Host

if TYPE_CHECKING:
    from dispatcher.engine import Engine
    from tests.support.world import World

#: Accidents and users' wishes fall into the first seconds of a world, and how many those are.
SPAN_S = 40.0

#: Seconds after which a user takes a trial for one that hangs.
HANG_S = 40.0

#: What users change of the settings, or an edited file does, and to what.
CHANGES: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("slots", (1, 2, 4)),
    ("max_trials", (10, 30)),
    ("max_duration_s", (None, 30.0, 90.0)),
    ("lookahead", (1, 6)),
    ("trial_retries", (0, 3)),
    ("keep_versions", (0, 1, 3)),
)

#: Rules that an upgrade turns on.
NEWER_RULES: tuple[tuple[str, Any], ...] = (
    ("losses_at_once", True),
    ("through_when_stopped", True),
    ("quarantine_after", 3),
    ("end_dropped", True),
)


class HeadCrash(BaseException):
    """``kill -9`` of the head, where it hurts."""


class Fate:
    """Plans everything once, at the beginning of a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = world.rng
        self._seen_running: set[tuple[int, int]] = set()

    @property
    def _engine(self) -> Engine:
        assert self._world.engine is not None
        return self._world.engine

    @property
    def _state(self) -> State:
        return self._engine.state

    def plan(self) -> None:
        """Accidents and users' wishes, spread over the time that the run may take."""
        rng, odds = self._rng, self._world.odds
        kinds: list[tuple[int, Callable[[], list[PeerMessage] | None]]] = [
            (odds.user_acts, self._user),
            (odds.host_crashes, self._world.tuner.crash),
            (odds.agent_deaths, lambda: self._host().die()),
            (odds.cuts, lambda: self._host().cut_off(rng.uniform(1.0, 2.5 * LOST_S))),
            (odds.resets, lambda: self._host().reset()),
            (odds.freezes, lambda: self._host().freeze(rng.uniform(1.0, 2.0 * LOST_S))),
            (odds.head_crashes, self._crash),
            (odds.disk_faults, self._spoil),
            (odds.power_cuts, self._power),
            (odds.clock_steps, self._step_clock),
            (odds.full_disks, self._fill),
            (odds.removals, self._remove),
            (odds.stops, self._stop),
        ]
        later: list[tuple[int, Callable[[], list[PeerMessage] | None]]] = [
            (odds.reviews, lambda: self._engine.post(e.StoresReviewed(rng.choice((0, 0, 1))))),
            (odds.imports, self._import),
            (odds.spaces, lambda: self._engine.post(e.SearchSpaceUpdated(f"{rng.random()}"))),
            (odds.updates, self._change),
            (odds.troubles, self._trouble),
            (odds.aimed, self._world.aim_at_what_was_heard),
            (odds.ambushes, self._lie_in_wait),
            (odds.tripwires, self._stretch_a_wire),
            (odds.takes, lambda: self._host().take_away(rng.uniform(0.5, 2.0 * LOST_S))),
            (odds.seconds, lambda: self._host().start_second()),
        ]
        for count, do in kinds:
            for _ in range(rng.randint(min(count, 1), count)):
                self._world.later(rng.uniform(0, SPAN_S), do)
        for _ in range(odds.offers):  # asked last: worlds without devices stay as they were
            self._world.later(rng.uniform(0, SPAN_S), self._spoil_devices)
        for count, do in later:  # worlds without these stay as they were, too
            for _ in range(count):
                self._world.later(rng.uniform(0, SPAN_S), do)
        if odds.sick:
            self._world.later(rng.uniform(5.0, SPAN_S), self._heal)
        if odds.hangs:
            self._world.later(HANG_S, self._end_hanging)

    def _host(self) -> Host:
        return self._rng.choice(list(self._world.hosts.values()))

    def _user(self) -> list[PeerMessage]:
        number = self._rng.randrange(max(1, int(self._state.next_id)))
        if self._state.running and self._rng.random() < 0.6:
            number = self._rng.choice(list(self._state.running))
        wish = self._rng.random()
        if wish < 0.5:
            return self._world.ask("stop_trial", trial=number)
        if wish < 0.75:
            return self._world.ask(
                "submit", parameters={"of": number, "as": f"hand/{self._world.fresh()}"}
            )
        if wish < 0.85:
            return self._world.ask("update", key="slots", value=self._rng.choice((1, 2, 4)))
        return self._world.ask("snapshot")

    def _stop(self) -> list[PeerMessage]:
        return self._world.ask("stop", kind=self._rng.choice(("drain", "now")), reason="the user")

    def _crash(self) -> None:
        self._world.kill_head(after_steps=self._rng.choice((1, 1, 2, 3, 5, 8, 13)))

    def _spoil(self) -> None:
        self._world.disk.refuse_next = self._rng.choice(("before", "after"))
        self._world.note(
            f"the disk refuses the next commit, {self._world.disk.refuse_next} it is there"
        )

    def _fill(self) -> None:
        """A file system runs full, and somebody tidies up, perhaps under another head."""
        self._engine.post(e.DiskLow("weights", 1 << 20, 1 << 30))

        def tidy() -> None:
            self._engine.post(e.DiskRecovered("weights", 1 << 31))

        self._world.later(self._rng.uniform(1.0, 20.0), tidy)

    def _spoil_devices(self) -> None:
        """A stranger computes on a device, or it falls off the bus; weights are cached meanwhile.
        Later all is as it was."""
        host, rng = self._host(), self._rng
        sound = self._world.case.offers.get(host.name)
        if sound is None:
            return
        victim = rng.choice(sound.devices)
        ailing = [] if rng.random() < 0.5 else [replace(victim, trouble="used by others")]
        rest = [device for device in sound.devices if device is not victim]
        digests = tuple(f"{rng.randrange(20)}.1" for _ in range(3))
        host.offer = replace(sound, devices=(*ailing, *rest), cached=digests)
        self._world.note(f"{victim.id} ails")

        def mend() -> None:
            host.offer = sound

        self._world.later(rng.uniform(1.0, 20.0), mend)

    def _power(self) -> None:
        self._world.note("the power of the head's machine fails")
        for name in self._world.hosts:
            self._world.harm(name)
        self._world.hosts["local"].die()
        self._world.disk.lose_power()
        raise HeadCrash

    def _step_clock(self) -> None:
        hours = self._rng.choice((-5, -1, 1, 7))
        self._world.note(f"the wall clock is stepped by {hours} h")
        self._world.skew += hours * 3600.0

    def _import(self) -> list[PeerMessage]:
        rows = [{"parameter": {"x": self._world.fresh()}, "value": 1.0}]
        return self._world.ask("import", rows=rows)

    def _change(self) -> list[PeerMessage]:
        """A user changes a limit while it runs."""
        key, values = self._rng.choice(CHANGES)
        return self._world.ask("update", key=key, value=self._rng.choice(values))

    def _trouble(self) -> None:
        """Something is wrong with a host, which an agent that begins there will find."""
        host = self._host()
        host.trouble = "its weights root is not there"
        self._world.note(f"{host.name} is in trouble")
        host.die()

        def mend() -> None:
            host.trouble = ""

        self._world.later(self._rng.uniform(1.0, 20.0), mend)

    def _heal(self) -> None:
        self._world.note("the first host fails no more")
        for host in self._world.hosts.values():
            host.is_sick = False

    def _end_hanging(self) -> list[PeerMessage]:
        """A user looks in now and then, and ends a trial that ran the last time, too; not one that
        is being ended as the head shows it."""
        self._world.later(HANG_S, self._end_hanging)
        state, before = self._state, self._seen_running
        self._seen_running = {(t, state.trials[t].attempt) for t in state.running}
        still = sorted(before & self._seen_running)
        old = [int(t) for t, _ in still if state.trials[t].kill_reason is None]
        return self._world.ask("stop_trial", trial=old[0]) if old else []

    def _stretch_a_wire(self) -> None:
        self._host().tripwire = True

    def _lie_in_wait(self) -> None:
        self._host().ambushed = True

    def _remove(self) -> None:
        trials = self._state.trials
        ended = [t.id for t in trials.values() if t.state is TrialState.ENDED and t.weights]
        if ended:
            some = self._rng.sample(ended, min(3, len(ended)))
            self._engine.post(e.RemovalAnnounced(tuple(sorted(some))))
