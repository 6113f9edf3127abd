"""Results of other experiments reach the tuner once, whoever dies in between."""

from __future__ import annotations

from dispatcher import core
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.state_codec import decode_state, encode_state
from tests.support.scene import Scene, of_kind


def test_what_was_imported_is_told_once() -> None:
    scene = Scene(slots=1)
    assert of_kind(scene.say(e.DataImported("[1]")), a.TellImport) == [a.TellImport(0, "[1]")]
    assert of_kind(scene.say(e.DataImported("[2]")), a.TellImport) == [a.TellImport(1, "[2]")]
    scene.say(e.ImportDelivered(0))
    assert scene.counted
    scene.say(e.ImportDelivered(0))
    assert not scene.counted
    assert scene.state.imports == {1: "[2]"}
    scene.assert_replays()
    assert decode_state(encode_state(scene.state)).imports == {1: "[2]"}


def test_what_a_dead_host_had_not_taken_is_told_to_the_next_before_results() -> None:
    scene = Scene(slots=1)
    scene.run(0)
    scene.say(e.DataImported("[1]"), e.DataImported("[2]"), e.ImportDelivered(0))
    scene.say(e.TunerHostLost("gone"))
    scene.say(e.ImportDelivered(1))  # crossed with its end
    assert not scene.counted
    assert of_kind(scene.say(e.DataImported("[3]")), a.TellImport) == []
    told = scene.say(e.TunerHostReady())
    assert told[:2] == [a.TellImport(1, "[2]"), a.TellImport(2, "[3]")]
    assert told[2].trial == TrialId(0)  # type: ignore[union-attr]


def test_an_import_that_raised_counts_and_is_shown() -> None:
    scene = Scene(slots=1)
    scene.say(e.DataImported("[1]"))
    (shown,) = of_kind(scene.say(e.ImportDelivered(0, "KeyError: 'x'")), a.ReportTunerError)
    assert shown == a.ReportTunerError(None, "import_data", "KeyError: 'x'")
    assert not [one for one in core.outstanding(scene.state) if isinstance(one, a.TellImport)]
