"""``bequeath nni``: the commands of ``nnictl``, for users who know them.

Each command takes NNI's own arguments and options and calls the function of our own command, and
does nothing else. An option is honoured, or refused by name. ``verbs.py`` is the table of all
commands, from which the command line and a part of ``docs/from-nni.md`` are made.
"""
