"""The page's files: which addresses are a page's, what is sent, and what is not."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from starlette.requests import Request

from dispatcher.web.faults import RequestRefused
from dispatcher.web.pages import Assets, is_page, passing_page, with_base


def request(**headers: str) -> Request:
    pairs = [(name.replace("_", "-").encode(), one.encode()) for name, one in headers.items()]
    return Request({"type": "http", "method": "GET", "path": "/", "headers": pairs})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    static = tmp_path / "static"
    (static / "page").mkdir(parents=True)
    (static / "index.html").write_text('<html><head lang="en">\n<base href="/">\n</head></html>')
    (static / "page" / "main.js").write_text("// " + "x" * 5_000)
    (static / "page" / "secret.txt").write_text("no page's")
    (tmp_path / "outside.js").write_text("outside")
    return static


def test_the_prefix_is_the_only_base() -> None:
    text = with_base("<html><head>\n<base href='/'>\n<title>x</title>", '/a"b')
    assert text.count("<base") == 1
    assert '<base href="/a&quot;b/">' in text
    assert with_base("<p>", "") == '\n<base href="/"><p>'


@pytest.mark.parametrize(
    "path,expected",
    [
        ("/", True),
        ("/leaderboard", True),
        ("/settings", True),
        ("/settings/x", False),
        ("/e/digits-1", True),
        ("/e/digits-1/lineage", True),
        ("/e/digits-1/t/12", True),
        ("/login", True),
        ("/e/digits-1/t/x", False),
        ("/e/digits-1/nonsense", False),
        ("/e/", False),
        ("/api/v1/session", False),
        ("/assets/page/main.js", False),
    ],
)
def test_addresses_of_the_page(path: str, expected: bool) -> None:
    assert is_page(path) is expected


def test_a_file_is_sent_once_and_small(folder: Path) -> None:
    assets = Assets(folder, "")
    first = assets.asset(request(), "page/main.js")
    assert first.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert first.headers["Cache-Control"] == "no-cache"
    tag = first.headers["ETag"]
    assert assets.asset(request(if_none_match=tag), "page/main.js").status_code == 304
    small = assets.asset(request(accept_encoding="br, gzip;q=0.5"), "page/main.js")
    assert gzip.decompress(bytes(small.body)) == bytes(first.body)
    (folder / "page" / "main.js").write_text("// new")
    assert assets.asset(request(if_none_match=tag), "page/main.js").body == b"// new"


@pytest.mark.parametrize(
    "path",
    ["../outside.js", "page/../../outside.js", "/etc/passwd.js", "page/none.js", "page/secret.txt",
     "page", ".hidden.js", "page//main.js", "a\0.js", "page/main.js/x.js", "index.html"],
)  # fmt: skip
def test_nothing_else_is_sent(folder: Path, path: str) -> None:
    with pytest.raises(RequestRefused):
        Assets(folder, "").asset(request(), path)


def test_without_a_page_the_interface_is_named(tmp_path: Path) -> None:
    body = bytes(Assets(tmp_path, "/x").index().body)
    assert b'<base href="/x/">' in body
    assert b"api/v1/openapi.json" in body


def test_a_passing_page_makes_its_target_harmless() -> None:
    body = bytes(passing_page('/"><script>').body)
    assert b"<script>" not in body
