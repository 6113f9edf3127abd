"""The site of the pages is built without a warning, and asks nothing of other hosts."""

from __future__ import annotations

import html.parser
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv" / "docs" / "bin" / "python"

pytestmark = pytest.mark.skipif(
    not PYTHON.exists(), reason="needs what builds the site: make docs-env"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it; each warning ends it."""
    there = tmp_path_factory.mktemp("site")
    command = [str(PYTHON), "-m", "mkdocs", "build", "--strict", "--site-dir", str(there)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    warnings = [line for line in done.stderr.splitlines() if line.startswith(("WARN", "ERR"))]
    assert done.returncode == 0, "\n".join(warnings) or done.stderr[-3000:]
    assert warnings == []
    return there


class _Loaded(html.parser.HTMLParser):
    """What a browser fetches by itself for a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {"link": "href", "form": "action"}
        for name, value in attrs:
            if tag != "a" and name in ("src", names.get(tag)) and value:
                self.addresses.append(value)


def test_no_page_fetches_anything_from_another_host(site: Path) -> None:
    """Mutation: a font of Google's, a logo by its URL, a counter of visits."""
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 150
    for page in pages:
        loaded = _Loaded()
        loaded.feed(page.read_text())
        foreign = [each for each in loaded.addresses if re.match(r"(https?:)?//", each)]
        assert foreign == [], page.relative_to(site)
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(\W?(https?:)?//|@import", style.read_text()), style


def test_all_public_names_are_on_it_with_their_docstrings(site: Path) -> None:
    from bequeath.names import NAMES

    text = (site / "python-reference" / "index.html").read_text()
    for module, names in NAMES.items():
        for name in set(names) - {"__version__"}:
            assert f'id="{module}.{name}"' in text, f"{module}.{name}"
    assert "Publish weights (and training state) that children may inherit" in text
    assert ":class:" not in text
    table = (site / "python-api" / "index.html").read_text()
    assert 'href="../python-reference/#trial_runtime.save_weights"' in table


def test_code_that_pages_link_to_is_on_it(site: Path) -> None:
    text = (site / "examples" / "hello" / "tuner.py" / "index.html").read_text()
    assert "BetterOfTwo" in text
    assert (site / "decisions" / "index.html").read_text().count("<li><a") >= 100
