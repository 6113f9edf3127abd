"""What an attempt has left when its process is gone, and what others say in that moment."""

from __future__ import annotations

import tempfile
from types import SimpleNamespace

from trial_runtime import wire
from trial_runtime.agent.base.loop import Timers
from trial_runtime.agent.config import TrialSpec
from trial_runtime.agent.trials.endpoint import Closed, TrialEndpoint
from trial_runtime.local_channel import LocalChannel


def test_others_are_heard_in_a_turn_of_their_own() -> None:
    with tempfile.TemporaryDirectory() as folder:
        endpoint = TrialEndpoint(folder, "w", TrialSpec(code_directory="."), Timers())
        gone, alive = (SimpleNamespace(key=(number, 1)) for number in (1, 2))
        endpoint.admit("gone", gone)  # type: ignore[arg-type]
        endpoint.admit("alive", alive)  # type: ignore[arg-type]
        channels = {
            who: LocalChannel(endpoint.address, who, patience_s=120) for who in ("gone", "alive")
        }
        for channel in channels.values():
            channel.send(wire.frame([wire.Attach(7)]))
        channels["gone"].send(wire.frame([wire.Final("1")]))
        channels["alive"].send(wire.frame([wire.Done((2, 1), 0)]))
        channels["gone"].close()
        heard = list(endpoint.last_messages(gone))  # type: ignore[arg-type]
        assert [type(m[0]) for _, m in heard] == [wire.Attach, wire.Final]
        assert all(connection.speaker.attempt is gone for connection, _ in heard)
        assert endpoint.has_put_by
        later = [messages for _, messages in endpoint.receive()]
        assert [type(m[0]) for m in later] == [wire.Attach, wire.Done]
        assert not endpoint.has_put_by
        channels["alive"].close()
        endpoint.close()


def test_who_is_hung_up_on_for_a_fault_is_named_once() -> None:
    """A warm worker is ended for that: nobody would hear of the end of its function."""
    with tempfile.TemporaryDirectory() as folder:
        endpoint = TrialEndpoint(folder, "w", TrialSpec(code_directory="."), Timers())
        speaker = endpoint.admit("own", SimpleNamespace(key=(1, 1)))  # type: ignore[arg-type]
        channel = LocalChannel(endpoint.address, "own", patience_s=120)
        channel.send(wire.frame([wire.Attach(7)]))
        channel.send(b"no frame of ours")
        heard = [
            (each.speaker, type(m[0])) for each, m in [*endpoint.receive(), *endpoint.receive()]
        ]
        assert heard == [(speaker, wire.Attach), (speaker, Closed)]
        assert speaker.connections == []
        channel.close()
        assert list(endpoint.receive()) == []
        endpoint.close()
