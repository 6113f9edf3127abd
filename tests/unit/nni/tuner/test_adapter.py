"""The adapter of NNI's tuners, as the tuner host asks it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import InternalError, TunerCodeError
from dispatcher.nni.dialect import NNI
from dispatcher.tuner_host import load
from dispatcher.tuner_host.adapter import PLAIN, adapter_of
from dispatcher.tuner_host.config import TunerHostConfig
from trial_runtime.endpoint import Endpoint
from trial_runtime.nni_shim.path.nni.tuner import Tuner


def config(file: Path | None = None, adapter: str = NNI.tuner_adapter) -> TunerHostConfig:
    return TunerHostConfig(
        endpoint=Endpoint(""),
        weights_root="",
        class_name="T",
        file=str(file or ""),
        adapter=adapter,
    )


@pytest.fixture
def strict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tuner that imports what NNI brought along, where that is not installed."""
    monkeypatch.setitem(sys.modules, "schema", None)
    file = tmp_path / "strict.py"
    file.write_text("from schema import Schema\nclass T:\n    pass\n")
    return file


def test_what_nni_brought_along_is_named_with_the_extra_that_has_it(strict: Path) -> None:
    with pytest.raises(TunerCodeError, match="import of schema halted") as refused:
        load.build(config(strict))
    assert "pip install 'bequeath[nni]'" in refused.value.hint


def test_other_tuners_get_no_advice_for_nni(strict: Path, tmp_path: Path) -> None:
    """Nor for other modules. Mutation: whatever is missing, NNI had it."""
    with pytest.raises(TunerCodeError) as refused:
        load.build(config(strict, adapter=""))
    assert not refused.value.hint
    other = tmp_path / "other.py"
    other.write_text("import no_module_of_this_name\n")
    with pytest.raises(TunerCodeError, match="no_module_of_this_name") as refused:
        load.build(config(other))
    assert not refused.value.hint


def test_methods_of_the_base_class_are_not_the_authors() -> None:
    class Own(Tuner):
        def import_data(self, data: Any) -> None:
            pass

    adapter = adapter_of(config())
    own = Own()
    assert adapter.is_inherited(own.generate_multiple_parameters)
    assert not adapter.is_inherited(own.import_data)
    assert not adapter.is_inherited(None)
    assert not PLAIN.is_inherited(own.generate_multiple_parameters)


def test_an_adapter_that_is_not_there_is_our_fault() -> None:
    assert adapter_of(config(adapter="")) is PLAIN
    with pytest.raises(InternalError, match=r"the adapter dispatcher\.nni\.gone:X is not there"):
        adapter_of(config(adapter="dispatcher.nni.gone:X"))
