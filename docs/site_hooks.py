"""Hooks of MkDocs (``make docs``): the pages of the repository, as they are, become a site.

Pages link to one another by relative paths in the repository, and a code host shows them so. The
site takes all of them at the same paths, with two exceptions in its addresses: ``docs/`` is the
root, and pages of the repository's root lie below ``project/``. A link to a file of code leads to
a page that shows it, a link to a folder to its README or to a list of its pages.

The reference of the Python API is made from docstrings, and exists on the site only.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bequeath.names import NAMES  # noqa: E402

#: What the site has besides files that these link to.
PAGES = (
    "docs/**/*.md",
    "*.md",
    "benchmarks/*.md",
    "examples/**/*.md",
    "tests/README.md",
)
PICTURES = (".png", ".svg", ".jpg", ".gif")

REACHED_BY_LINKS = InclusionLevel.NOT_IN_NAV

REFERENCE = "docs/python-reference.md"
DECISIONS = "docs/decisions/index.md"

_LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
_ROLE = re.compile(r":(?:class|meth|func|mod|attr|data|exc|py:\w+):<code>[~.]*([^<]*)</code>")
_NAME = re.compile(r"^\| `bq\.(\w+)` \|", re.M)

#: The module in which each group of names is documented, by its title.
_TITLES = {
    "dispatcher": "Experiments",
    "dispatcher.study": "Studies",
    "trial_runtime.errors": "Errors",
    "trial_runtime.api_errors": "Errors of reports",
    "trial_runtime": "Trials",
    "tuners": "Tuners",
    "tuners.space.parameters": "Search spaces",
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give headings the anchors that code hosts give them."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = slugify(case="lower")
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take the pages of the repository in place of those of ``docs_dir``."""
    kept = [each for each in files if each.src_dir != config.docs_dir]
    pages = sorted({page.relative_to(ROOT).as_posix() for page in _pages()})
    linked = sorted({target for page in pages for target in _targets(page)} - set(pages))
    taken = [_copied(config, each) for each in pages]
    for target in linked:
        if target.endswith(PICTURES):
            taken.append(_copied(config, target))
        else:
            taken.append(_generated(config, f"{target}.md", _shown(target), REACHED_BY_LINKS))
    taken.append(_generated(config, REFERENCE, _reference()))
    taken.append(_generated(config, DECISIONS, _decisions()))
    return Files([*kept, *taken])


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Lead links to folders and to code to the pages that stand for them."""
    here = page.file.src_uri
    if here == "docs/python-api.md":
        markdown = _NAME.sub(_linked_name, markdown)
    if page.file.generated_by is not None:
        return markdown
    return _LINK.sub(lambda link: f"{link[1]}{_moved(here, link[2])}{link[3]}", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Show roles of docstrings, such as ``:class:``, as the code that they name."""
    return _ROLE.sub(r"<code>\1</code>", html)


def _pages() -> Iterator[Path]:
    for pattern in PAGES:
        yield from ROOT.glob(pattern)


def _targets(page: str) -> Iterator[str]:
    """The files besides pages that a page links to."""
    for _, target, _ in _LINK.findall((ROOT / page).read_text(encoding="utf-8")):
        path = _resolved(page, target)
        if path and (ROOT / path).is_file() and not path.endswith(".md"):
            yield path


def _resolved(page: str, target: str) -> str:
    """The path of a link's target in the repository; empty if it leads out of it."""
    if ":" in target or target.startswith("/"):
        return ""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
    return "" if path.startswith("..") else path


def _moved(page: str, target: str) -> str:
    """The target that a link has on the site."""
    path = _resolved(page, target)
    there = ROOT / path
    if not path:
        return target
    if there.is_dir():
        index = "index.md" if path == posixpath.dirname(DECISIONS) else "README.md"
        return posixpath.join(target, index)
    code = there.is_file() and not path.endswith((".md", *PICTURES))
    return f"{target}.md" if code else target


def _placed(file: File) -> File:
    """Return the file with its address on the site."""
    if file.src_uri.startswith("docs/"):
        file.dest_uri = file.dest_uri.removeprefix("docs/")
    elif "/" not in file.src_uri:
        name = file.src_uri.removesuffix(".md").lower()
        file.dest_uri = f"project/{name}/index.html"
    return file


def _copied(config: MkDocsConfig, path: str) -> File:
    """A file of the repository as it is."""
    decision = re.match(r"docs/decisions/\d", path)
    inclusion = REACHED_BY_LINKS if decision else InclusionLevel.UNDEFINED
    return _placed(File(path, str(ROOT), config.site_dir, True, inclusion=inclusion))


def _generated(
    config: MkDocsConfig,
    path: str,
    text: str,
    inclusion: InclusionLevel = InclusionLevel.UNDEFINED,
) -> File:
    return _placed(File.generated(config, path, content=text, inclusion=inclusion))


def _shown(path: str) -> str:
    """A page that shows a file of code."""
    language = {".py": "python", ".yml": "yaml", ".yaml": "yaml", ".sh": "bash"}
    kind = language.get(posixpath.splitext(path)[1], "text")
    text = (ROOT / path).read_text(encoding="utf-8")
    return f"---\nsearch:\n  exclude: true\n---\n\n# {path}\n\n````{kind}\n{text}````\n"


def _decisions() -> str:
    lines = ["# Decisions\n", "Each page says what was chosen, why, and what was not.\n"]
    for page in sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md")):
        title = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        number, _, name = title.partition(". ")
        lines.append(f"- [{number.zfill(4)}]({page.name}) {name}")
    return "\n".join(lines) + "\n"


def _reference() -> str:
    """The page of all public names, which mkdocstrings fills from their docstrings."""
    parts = [
        "# Python reference\n",
        "All names are in one package: `import bequeath as bq`. "
        "[One table](python-api.md) lists them.\n",
    ]
    for module, title in _TITLES.items():
        parts.append(f"## {title}\n")
        for name in sorted(set(NAMES[module]) - {"__version__"}, key=str.lower):
            heading = f"    options:\n      heading: bq.{name}\n      toc_label: {name}\n"
            parts.append(f"::: {module}.{name}\n{heading}")
    return "\n".join(parts)


def _linked_name(row: re.Match[str]) -> str:
    homes = {name: module for module, names in NAMES.items() for name in names}
    home = homes.get(row[1])
    return row[0] if home is None else f"| [`bq.{row[1]}`][{home}.{row[1]}] |"
