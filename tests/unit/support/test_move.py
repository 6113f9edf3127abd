"""``tests.move``: a module gets another name, and everything that names it follows."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.move import Move, move

ENGINE = '"""The engine."""\n\n\ndef turn():\n    return 1\n'
USER = '''"""Uses it, see :mod:`shop.engine`."""

import shop.engine
from shop import engine, till
from shop.engine import turn


def work(monkeypatch):
    monkeypatch.setattr("shop.engine.turn", None)
    return engine.turn() + till.count() + turn() + shop.engine.turn()
'''
PAGE = "`shop/engine.py` turns, `shop.engines` does not, nor does my.shop.engine.\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    files = {
        "shop/__init__.py": "",
        "shop/engine.py": ENGINE,
        "shop/till.py": '"""A till."""\n\n\ndef count():\n    return 2\n',
        "use.py": USER,
        "page.md": PAGE,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "photo.png").write_bytes(b"\x89PNG shop.engine")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def test_a_module_moves_and_is_known_by_its_new_name(tree: Path) -> None:
    lines = move([Move.parse("shop.engine=shop.work.motor", tree)], tree)
    assert (tree / "shop/work/motor.py").read_text() == ENGINE
    assert (tree / "shop/work/__init__.py").read_text() == ""
    assert not (tree / "shop/engine.py").exists()
    text = (tree / "use.py").read_text()
    assert text.startswith('"""Uses it, see :mod:`shop.work.motor`."""\n\nimport shop.work.motor\n')
    assert "from shop import till\nfrom shop.work import motor\n" in text
    assert "from shop.work.motor import turn\n" in text
    assert 'monkeypatch.setattr("shop.work.motor.turn", None)' in text
    assert "return motor.turn() + till.count() + turn() + shop.work.motor.turn()" in text
    page = (tree / "page.md").read_text()
    assert page.startswith("`shop/work/motor.py` turns, `shop.engines` does not, nor does my.shop.")
    assert lines[0] == "2 files change"
    code = "import use; print(use.work(type('P', (), {'setattr': print})))"
    done = subprocess.run(
        ["python3", "-c", code], cwd=tree, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "5"


def test_what_is_in_doubt_is_named_and_left_alone(tree: Path) -> None:
    (tree / "shop/back").mkdir()
    (tree / "shop/back/room.py").touch()
    (tree / "page.md").write_text("See shop/back/room.py, or\nback/room.py.\n")
    subprocess.run(["git", "add", "."], cwd=tree, check=True)
    lines = move([Move.parse("shop.back.room=shop.cellar", tree)], tree)
    assert lines == ["1 files change", "page.md:2: back/room.py."]
    assert (tree / "page.md").read_text() == "See shop/cellar.py, or\nback/room.py.\n"


def test_a_package_moves_with_all_its_modules(tree: Path) -> None:
    (tree / "deep.py").write_text("from shop.engine import turn as go\nimport shop\n")
    subprocess.run(["git", "add", "."], cwd=tree, check=True)
    move([Move.parse("shop=market.stall", tree)], tree)
    assert (tree / "market/stall/engine.py").read_text() == ENGINE
    assert (tree / "deep.py").read_text() == (
        "from market.stall.engine import turn as go\nimport market.stall\n"
    )
    assert "from market.stall import engine\nfrom market.stall import till\n" in (
        (tree / "use.py").read_text()
    )


def test_a_dry_run_changes_nothing(tree: Path) -> None:
    files = [tree / name for name in ("use.py", "page.md", "shop/engine.py")]
    before = [path.read_bytes() for path in files]
    assert move([Move.parse("shop.engine=shop.motor", tree)], tree, dry=True) == ["2 files change"]
    assert [path.read_bytes() for path in files] == before


def test_what_cannot_be_moved(tree: Path) -> None:
    for text, reason in {
        "shop.nothing=shop.x": "no module shop.nothing",
        "shop.engine=shop.till": "is there already",
        "shop.engine": "is not old=new",
    }.items():
        with pytest.raises(SystemExit, match=reason):
            Move.parse(text, tree)
    (tree / "use.py").write_text("from shop import engine\nengine = engine.turn()\n")
    with pytest.raises(SystemExit, match="engine is bound twice"):
        move([Move.parse("shop.engine=shop.motor", tree)], tree)
