"""Two folders of authors' code in one process, and what counts as a module."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.tuner_host import user_folder
from dispatcher.tuner_host.user_folder import UserFolder


@pytest.fixture(autouse=True)
def imports_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(user_folder, "_installed", {})
    before = set(sys.modules)
    yield
    for name in [
        one for one in set(sys.modules) - before if one.startswith(("bq_", "bequeath_user"))
    ]:
        del sys.modules[name]


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def test_neighbours_of_the_same_name_in_two_folders(tmp_path: Path) -> None:
    code = "import bq_shared\ndef late():\n    import bq_lazy\n    return bq_lazy.WHERE\n"
    one = write(tmp_path / "1", bq_a=code, bq_shared="WHERE = 1", bq_lazy="WHERE = 1")
    two = write(tmp_path / "2", bq_b=code, bq_shared="WHERE = 2", bq_lazy="WHERE = 2")
    first = UserFolder.at(one).load("bq_a")
    second = UserFolder.at(two).load("bq_b")
    assert (first.bq_shared.WHERE, second.bq_shared.WHERE) == (1, 2)
    assert (second.late(), first.late()) == (2, 1)
    assert UserFolder.at(one) is UserFolder.at(tmp_path / "2" / ".." / "1")
    assert first.__name__ == "bq_a"  # plain names where nothing collides


def test_installed_modules_stay_what_they_are_for_everybody_else(tmp_path: Path) -> None:
    import numpy

    code = "import numpy\nimport json\nWHO = numpy.WHO\nPI = numpy.pi\n"
    folder = write(tmp_path, bq_c=code, numpy="WHO = 'theirs'", json="raise RuntimeError")
    module = UserFolder.at(folder).load("bq_c")
    assert module.WHO == "theirs"
    assert pytest.approx(numpy.pi) == module.PI  # what theirs lacks is looked for in ours
    assert sys.modules["numpy"] is numpy


def test_folders_of_data_hide_nothing(tmp_path: Path) -> None:
    (tmp_path / "numpy").mkdir()
    (tmp_path / "tuners").mkdir()
    write(tmp_path / "numpy", notes="")
    folder = UserFolder.at(write(tmp_path, bq_d="import numpy, tuners\n"))
    assert folder.colliding == frozenset()
    module = folder.load("bq_d")
    assert hasattr(module.numpy, "array")
    assert hasattr(module.tuners, "Tuner")


def test_what_is_not_there(tmp_path: Path) -> None:
    folder = UserFolder.at(write(tmp_path, tuners="from tuners import nothing_such\n"))
    with pytest.raises(ImportError, match="nothing_such"):
        folder.load("tuners")
    with pytest.raises(ModuleNotFoundError):
        folder.load("bq_missing")


def test_a_file_of_our_packages_name_may_begin_with_what_is_in_ours(tmp_path: Path) -> None:
    code = "from tuners import Tuner\nimport tuners\nclass Evo(Tuner):\n    base = tuners.Tuner\n"
    module = UserFolder.at(write(tmp_path, tuners=code)).load("tuners")
    assert issubclass(module.Evo, module.Tuner)
    assert module.Evo.base is sys.modules["tuners"].Tuner
