"""``python -m bequeath``: the command line, as the installed command ``bequeath``."""

from __future__ import annotations

import gc
import sys

#: Objects after which a search for cycles begins: a command makes many that stay, and ends soon.
_MANY = 50_000


def main() -> None:
    """Run the command ``bequeath``. Ends the process."""
    from bequeath.packages import make_ready

    gc.set_threshold(_MANY)
    try:
        make_ready("dispatcher")
    except ImportError as error:
        sys.exit(f"bequeath: {error}")
    from importlib import import_module

    import_module("dispatcher.cli.main").main()


if __name__ == "__main__":
    main()
