"""Write the pages that are made from the code: ``make docs``. Tests compare them with it."""

from pathlib import Path

from dispatcher.cli.reference import reference_markdown as commands
from dispatcher.experiment.reference import reference_markdown as configuration
from dispatcher.nni.page import page as from_nni
from dispatcher.operations.reference import reference_markdown as operations

DOCS = Path(__file__).parent


def pages() -> dict[str, str]:
    """Name → text of each generated page."""
    return {
        "configuration.md": configuration(),
        "cli.md": commands(),
        "operations.md": operations(),
        "from-nni.md": from_nni(),
    }


if __name__ == "__main__":
    for name, text in pages().items():
        (DOCS / name).write_text(text)
