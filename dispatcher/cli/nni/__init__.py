"""``bequeath nni``: the words that fingers know from ``nnictl``.

Each takes NNI's own words and options and calls the function of our own command; nothing is done
here that those do not do. An option is honoured, or refused by name. ``verbs.py`` is the table of
all of them, of which the command line and a page of ``docs/from-nni.md`` are made.
"""
