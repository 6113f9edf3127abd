"""Write the pages that are made from the code: ``make docs``. Tests compare them with it."""

import tempfile
from pathlib import Path

from dispatcher.cli.reference import reference_markdown as commands
from dispatcher.experiment.reference import reference_markdown as configuration
from dispatcher.foreign_files.page import page as from_others
from dispatcher.nni.page import page as from_nni
from dispatcher.operations.reference import reference_markdown as operations
from dispatcher.web.reference import reference_markdown as rest
from tuners.space.page import page as search_spaces

DOCS = Path(__file__).parent


def pages() -> dict[str, str]:
    """Name → text of each generated page."""
    return {
        "configuration.md": configuration(),
        "cli.md": commands(),
        "operations.md": operations(),
        "from-nni.md": from_nni(),
        "from-others.md": from_others(),
        "rest.md": _rest(),
        "search-spaces.md": search_spaces(),
    }


def _rest() -> str:
    with tempfile.TemporaryDirectory() as folder:
        return rest(Path(folder))


if __name__ == "__main__":
    for name, text in pages().items():
        (DOCS / name).write_text(text)
