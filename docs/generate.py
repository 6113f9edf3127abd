"""Write the pages that are made from the code: ``make docs``. Tests compare them with it."""

from pathlib import Path

from dispatcher.cli.reference import reference_markdown as commands
from dispatcher.experiment.schema import reference_markdown as configuration
from dispatcher.nni.commands.page import verbs_markdown
from dispatcher.nni.files.page import page as from_nni

DOCS = Path(__file__).parent


def pages() -> dict[str, str]:
    """Name → text of each generated page."""
    return {
        "configuration.md": configuration(),
        "cli.md": commands(),
        "from-nni.md": from_nni(verbs_markdown()),
    }


if __name__ == "__main__":
    for name, text in pages().items():
        (DOCS / name).write_text(text)
