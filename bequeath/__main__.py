"""``python -m bequeath``: the command line, as the installed command ``bequeath``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command ``bequeath``. Ends the process."""
    from bequeath.packages import make_ready

    try:
        make_ready("dispatcher")
    except ImportError as error:
        sys.exit(f"bequeath: {error}")
    from importlib import import_module

    import_module("dispatcher.cli.main").main()


if __name__ == "__main__":
    main()
