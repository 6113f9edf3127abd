"""The files of NNI's own page, from a folder that stands in for the package's."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest

from dispatcher.errors import UserError
from dispatcher.nni.rest.portal import installed_page
from tests.unit.nni.rest.conftest import Asked, Make

SCRIPT = "console.log(1)"


@pytest.fixture
def static(tmp_path: Path) -> Path:
    folder = tmp_path / "env" / "lib" / "python3.11" / "site-packages" / "nni_node" / "static"
    (folder / "static" / "js").mkdir(parents=True)
    (folder / "index.html").write_text(f"<html><script>{SCRIPT}</script><body>NNI</body></html>")
    (folder / "asset-manifest.json").write_text("{}")
    (folder / "static" / "js" / "main.js").write_text("1")
    (folder / "service-worker.js").write_text("1")
    (folder / "notes.txt").write_text("1")
    (folder.parent / "main.js").write_text("secret")
    (folder / "out.js").symlink_to(folder.parent / "main.js")
    return folder


def test_the_page_is_found_in_an_environment(static: Path) -> None:
    for given in (static, static.parent, static.parents[1], static.parents[4]):
        assert installed_page(given) == static


def test_a_folder_without_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not there"):
        installed_page(tmp_path)


def test_the_package_beside_us_is_found(static: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed_page(None) is None
    (static.parent / "__init__.py").write_text("raise SystemExit('it is not to be imported')")
    monkeypatch.syspath_prepend(str(static.parents[1]))
    assert installed_page(None) == static


def test_paths_of_the_page_are_the_page(make: Make, static: Path) -> None:
    asked = make(page=static)
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    for path in ("/", "/oview", "/detail", "/experiment", "/index.html"):
        answer = asked("GET", path, api="")
        assert answer.status == 200, path
        assert answer.headers["content-type"].startswith("text/html")
        policy = answer.headers["content-security-policy"]
        assert f"script-src 'self' 'sha256-{digest}';" in policy
        assert "unsafe-eval" not in policy
        assert "http" not in policy


def test_its_files_are_there_and_no_others(make: Make, static: Path) -> None:
    asked = make(page=static)
    answer = asked("GET", "/static/js/main.js", api="")
    assert (answer.status, answer.body) == (200, b"1")
    assert answer.headers["content-type"].startswith("text/javascript")
    for path in (
        "/../main.js",
        "/static/../../main.js",
        "/out.js",
        "/notes.txt",
        "/none.js",
        "/service-worker.js",
        "//etc/passwd.js",
        "/api/v1/nni/nothing",
        "/api/nothing",
        "/logs/nothing",
        "/\0.js",
        f"/{'x' * 3_000}.js",
    ):
        assert asked("GET", path, api="").status == 404, path


def test_without_it_one_reads_where_to_have_it(asked: Asked) -> None:
    answer = asked("GET", "/", api="")
    assert answer.status == 200
    assert b"pip install nni==3.0" in answer.body
    assert asked("GET", "/oview", api="").status == 404
