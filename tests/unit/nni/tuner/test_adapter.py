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


AT_THE_TOP = """
from schema import Schema
class T:
    pass
"""
IN_THE_CONSTRUCTOR = """
from nni.utils import ClassArgsValidator
class T(ClassArgsValidator):
    def __init__(self):
        self.range("momentum", float, 0, 1)
"""
IN_A_METHOD = """
class T:
    def generate_parameters(self, number):
        import json_tricks
    def receive_trial_result(self, number, parameters, value):
        pass
"""
ADVICE = r"No module named '(schema|json_tricks)': NNI .* pip install 'bequeath\[nni\]' brings it$"


class Without:
    """A finder of modules that does not know what NNI brought along."""

    def __init__(self, finder: Any) -> None:
        self._finder = finder

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        known = name not in ("schema", "json_tricks")
        return self._finder.find_spec(name, path, target) if known else None


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without the extra, and no tuner of NNI's in this process so far."""
    monkeypatch.setattr(sys, "meta_path", [Without(finder) for finder in sys.meta_path])
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("schema", "json_tricks"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def use(folder: Path, code: str, adapter: str = NNI.tuner_adapter) -> None:
    """Build a tuner of that code and ask it for a trial."""
    file = folder / "strict.py"
    file.write_text(code)
    described = config(file, adapter)
    adapter_of(described).make_importable()
    load.build(described).generate(0)


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("code", [AT_THE_TOP, IN_THE_CONSTRUCTOR, IN_A_METHOD])
def test_what_nni_brought_along_is_named_with_the_extra_that_has_it(
    code: str, tmp_path: Path
) -> None:
    with pytest.raises((TunerCodeError, ModuleNotFoundError), match=ADVICE):
        use(tmp_path, code)


@pytest.mark.usefixtures("bare")
def test_other_tuners_get_no_advice_for_nni(tmp_path: Path) -> None:
    """Nor for other modules. Mutation: whatever is missing, NNI had it."""
    with pytest.raises(TunerCodeError, match=r"No module named 'schema'$"):
        use(tmp_path, AT_THE_TOP, adapter="")
    with pytest.raises(TunerCodeError, match=r"No module named 'no_module_of_this_name'$"):
        use(tmp_path, "import no_module_of_this_name\n")


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
