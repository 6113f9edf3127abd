"""Storages of Optuna's by their URL: none is made, and no password is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import optuna
import pytest

import bequeath as bq
from dispatcher.errors import UserError
from dispatcher.study.storage_urls import file_of_sqlite, without_password


@pytest.fixture
def study(tmp_path: Path) -> Any:
    with bq.Study(folder=tmp_path / "study", tuner="Random") as made:
        yield made


@pytest.mark.parametrize("url", ["sqlite:///{}", "sqlite+pysqlite:///{}?timeout=1"])
def test_a_file_that_is_not_there_is_not_made(study: bq.Study, tmp_path: Path, url: str) -> None:
    """Mutation: SQLite makes an empty one, and Optuna its tables in it."""
    file = tmp_path / "mistyped.db"
    with pytest.raises(UserError, match=r"there is no such file: '.*mistyped.db'") as refused:
        study.warm_start(url.format(file))
    assert "sqlite:////home" in refused.value.hint
    assert not file.exists()


def test_an_empty_file_stays_empty(study: bq.Study, tmp_path: Path) -> None:
    """Mutation: Optuna makes its tables in it."""
    file = tmp_path / "empty.db"
    file.touch()
    with pytest.raises(UserError, match="is no storage of Optuna's"):
        study.warm_start(f"sqlite:///{file}")
    assert file.read_bytes() == b""


@pytest.mark.parametrize("name", [None, "mine"])
def test_a_storage_without_a_study(study: bq.Study, tmp_path: Path, name: str | None) -> None:
    """Mutation: it 'has several studies: none'."""
    url = f"sqlite:///{tmp_path / 'bare.db'}"
    optuna.storages.RDBStorage(url)
    for each in (url, tmp_path / "bare.db", "sqlite://"):
        with pytest.raises(UserError, match="storage holds no study") as refused:
            study.warm_start(each, study_name=name)
        assert refused.value.hint


def test_a_password_is_not_shown(study: bq.Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of the URL nor in what others make of it. Mutation: it stands in the error."""
    url = "postgresql://me:hush%40hush@localhost:1/x"

    class Library:
        load_study = None

        def get_all_study_names(self, storage: str) -> list[str]:
            raise OSError(f"no {storage}, or 'hush@hush' is wrong for me@localhost")

    with pytest.raises(UserError) as refused:
        study.warm_start(url)
    assert "postgresql://me:***@localhost:1/x" in str(refused.value)
    monkeypatch.setattr("tuners.optuna.library.optuna", Library)
    with pytest.raises(UserError, match="or '\\*\\*\\*' is wrong for me@localhost") as refused:
        study.warm_start(url)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    "url, shown",
    [
        ("mysql://h/x?password=hush&x=1", "mysql://h/x?password=***&x=1"),
        ("mysql://u:a@b/c@h/x", "mysql://u:***@h/x"),
        ("mysql://user@h:3306/x", "mysql://user@h:3306/x"),
    ],
)
def test_wherever_a_password_stands(url: str, shown: str) -> None:
    assert without_password(f"cannot reach {url}", url) == f"cannot reach {shown}"


@pytest.mark.parametrize(
    "url, path",
    [
        ("sqlite:///a.db", "a.db"),
        ("sqlite:////a/b%20c.db?timeout=3", "/a/b%20c.db"),
        ("sqlite:///file:a%20b.db?mode=ro&uri=true", "a b.db"),
        ("sqlite:///file:a?mode=memory&uri=true", None),
        ("sqlite:///:memory:", None),
        ("postgresql://h/x", None),
    ],
)
def test_the_file_of_a_url(url: str, path: str | None) -> None:
    assert file_of_sqlite(url) == (None if path is None else Path(path))
