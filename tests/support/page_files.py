"""Which files of the web page a visit to one of its pages loads: pages come when one goes there."""

from __future__ import annotations

import re
from pathlib import Path

from dispatcher.web.settings import STATIC

#: By name, the module of each page.
PAGES = {path.stem: path for path in sorted(STATIC.glob("pages/*.js"))}


def visited(page: Path) -> set[Path]:
    """The files that a visit loads, the document among them; what is imported later, when somebody
    goes there, is not.

    Args:
        page: its module.
    """
    others = {one for one in STATIC.rglob("*") if one.suffix in (".css", ".html", ".svg")}
    return _loaded(STATIC / "page" / "main.js", STATIC / "page" / "early.js", page) | others


def _loaded(*modules: Path) -> set[Path]:
    found: set[Path] = set()
    new = list(modules)
    while new:
        one = new.pop()
        if one not in found:
            found.add(one)
            named = re.findall(r"""from "(\.\.?/[^"]+)";""", one.read_text())
            new += [(one.parent / path).resolve() for path in named]
    return found
