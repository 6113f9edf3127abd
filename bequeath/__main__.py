"""``python -m bequeath``: the command line, as the installed command ``bequeath``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command ``bequeath``. Ends the process."""
    from bequeath.packages import load

    try:
        load("dispatcher")
        command = load("dispatcher.cli.main")
    except ImportError as error:
        sys.exit(f"bequeath: {error}")
    command.main()


if __name__ == "__main__":
    main()
