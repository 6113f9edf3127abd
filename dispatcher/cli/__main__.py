"""``python -m dispatcher.cli``: the command ``bequeath`` in a checkout."""

from dispatcher.cli.main import main

main()
