"""A trained model is asked after its search has ended, without a head."""

from __future__ import annotations

import base64
import os
import time
from pathlib import Path

import psutil
import pytest

from dispatcher.errors import PassingBackendError, UserError
from dispatcher.inference import models as models_module
from dispatcher.inference.models import Models
from dispatcher.inference.process import ModelBounds, ModelProcess
from dispatcher.inference.trained import trained
from dispatcher.operations.operation import Context, perform
from dispatcher.operations.table import INFER_INPUTS
from dispatcher.weight_keeper import Keep, Policy, holds
from tests.support.processes import wait_until
from tests.support.trained import USUAL, TrainedSearch

BOUNDS = ModelBounds(2 << 30, 30.0, 60.0)


def test_it_has_its_own_weights_folder_and_environment(search: TrainedSearch) -> None:
    """Mutation: the parent's weights, another folder, or an environment without its secrets."""
    told = search.ask(1, {"x": 2, "picture": {"base64": base64.b64encode(b"abc").decode()}})
    assert told.answer["w"] == [[1.0] * 3] * 4
    assert told.answer["n"] == 1
    assert told.answer["request"] == {"x": 2, "picture": 3}
    assert told.answer["cwd"] == str(search.code)
    assert told.answer["secret"] == "hunter-of-secrets"
    assert told.answer["pid"] != os.getpid()
    assert told.loaded_s > 0
    assert not psutil.pid_exists(told.answer["pid"])
    assert holds.held(search.place) == set()


def test_without_load_model_the_model_is_what_was_saved(search: TrainedSearch) -> None:
    search.offer("\ndef infer(model, request):\n    return model['w'].sum()\n")
    assert search.ask(2, {}).answer == 24.0


def test_parameters_name_the_trials_own_weights_and_no_place_to_save(
    search: TrainedSearch,
) -> None:
    search.offer(
        "\ndef load_model(parameters):\n    return parameters\n"
        "def infer(model, request):\n    return sorted(model), model['restore_path'],"
        " bq.get_parameters() == model\n"
    )
    names, path, same = search.ask(2, {}).answer
    assert names == ["n", "restore_path"]
    assert Path(path).name == "2"
    assert (Path(path) / "manifest.json").is_file()
    assert same


def test_nothing_can_be_saved_or_reported(search: TrainedSearch) -> None:
    before = sorted(str(path) for path in search.place.rglob("*"))
    search.offer(
        "\ndef infer(model, request):\n    bq.report_final(3.0)\n    bq.report_intermediate(1)\n"
        "    try:\n        bq.save_weights(model)\n    except Exception as error:\n"
        "        return type(error).__name__\n"
    )
    assert search.ask(2, {}).answer == "NoSavePath"
    after = sorted(str(path) for path in search.place.rglob("*"))
    assert [one for one in after if "held" not in one and one not in before] == []


def test_a_warm_model_answers_again_and_goes(
    search: TrainedSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: no warm process; or one that stays for good, or when its code has changed."""
    models = Models(keep_s=0.5)
    context = Context(models=models)
    first = search.ask(1, {}, context)
    again = search.ask(1, {}, context)
    assert again.answer["pid"] == first.answer["pid"]
    assert again.loaded_s == 0.0
    assert holds.held(search.place) == {1}
    # Another trial takes its place, and then a changed module.
    other = search.ask(2, {}, context)
    assert other.answer["pid"] != first.answer["pid"]
    assert not psutil.pid_exists(first.answer["pid"])
    search.offer(USUAL + "\n# changed\n")
    changed = search.ask(2, {}, context)
    assert changed.answer["pid"] != other.answer["pid"]
    wait_until(lambda: not psutil.pid_exists(changed.answer["pid"]), "it goes")
    wait_until(lambda: not holds.held(search.place), "its weights are held no more")
    # One that was killed is followed by another one.
    killed = search.ask(2, {}, context).answer["pid"]
    psutil.Process(killed).kill()
    psutil.wait_procs([psutil.Process(killed)] if psutil.pid_exists(killed) else [], timeout=1)
    assert search.ask(2, {}, context).answer["pid"] != killed
    monkeypatch.setattr(models_module, "OLDEST_S", 0.0)
    last = search.ask(2, {}, context).answer["pid"]
    models.close()
    assert not psutil.pid_exists(last)


def test_more_at_once_are_refused(search: TrainedSearch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models_module, "MOST_AT_ONCE", 0)
    context = Context(models=Models())
    with pytest.raises(PassingBackendError, match="models are being asked already"):
        search.ask(1, {}, context)
    monkeypatch.undo()
    context = Context(models=Models())
    for _ in range(2 * models_module.MOST_AT_ONCE):  # a place is given back
        assert search.ask(1, {}, context).answer["n"] == 1


def test_weights_stay_while_a_model_is_asked(search: TrainedSearch) -> None:
    """Mutation: a process that holds nothing."""
    weights = search.handle.weights
    process = ModelProcess(trained(search.handle, 0), BOUNDS)
    try:
        plan = weights.plan(Policy(Keep.BEST, 1)).plan
        assert [one.trial for one in plan.doomed] == [1]
        assert process.ask({}).value["w"] == [[0.0] * 3] * 4
    finally:
        process.close()
    assert [one.trial for one in weights.plan(Policy(Keep.BEST, 1)).plan.doomed] == [0, 1]


def test_a_changed_module_is_noted(search: TrainedSearch) -> None:
    notes: list[str] = []
    os.utime(search.code / "trial.py", (time.time() + 60, time.time() + 60))
    search.ask(1, {}, Context(note=notes.append))
    assert notes == ["trial.py was changed after trial 1 had ended"]


def test_what_a_request_holds_is_declared(search: TrainedSearch) -> None:
    search.offer(
        '\nINFER_INPUTS = {"n": {"kind": "number", "minimum": 0}, "d": {"kind": "drawing",'
        ' "width": 2, "height": 1}}\n' + USUAL
    )
    told = perform(INFER_INPUTS, Context(), experiment=str(search.place), trial=1)
    assert told.available
    assert told.inputs is not None
    assert [(one.name, one.kind, one.width) for one in told.inputs] == [
        ("n", "number", 28), ("d", "drawing", 2),
    ]  # fmt: skip
    answer = search.ask(1, {"n": 3, "d": [[0, 0.5]]})
    assert answer.answer["request"] == {"n": 3, "d": [[0, 0.5]]}
    for request, part in (
        ({"n": -1, "d": [[0, 1]]}, "'n' must be 0 or more"),
        ({"n": 1, "d": [[0, 2]]}, "'d' must be a list of 1 rows of 2 numbers"),
        ({"n": 1}, "'d' is missing"),
        ({"n": 1, "d": [[0, 1]], "e": 1}, "no field 'e'"),
    ):
        with pytest.raises(UserError, match=part):
            search.ask(1, request)


def test_a_picture_is_taken_for_a_drawing(search: TrainedSearch, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    search.offer('\nINFER_INPUTS = {"d": {"kind": "drawing", "width": 2, "height": 2}}\n' + USUAL)
    picture = image.new("L", (40, 40), 255)
    picture.paste(0, (0, 0, 20, 20))
    picture.save(tmp_path / "p.png")
    given = {"base64": base64.b64encode((tmp_path / "p.png").read_bytes()).decode()}
    assert search.ask(1, {"d": given}).answer["request"]["d"] == [[1.0, 0.0], [0.0, 0.0]]
    with pytest.raises(UserError, match="the image file cannot be read"):
        search.ask(1, {"d": {"base64": base64.b64encode(b"no picture").decode()}})
