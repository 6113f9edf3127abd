"""The command line: queries, output, and requests to the head. It decides nothing.

Read ``main.py`` (the entry, and where errors end), then ``commands.py`` (every command by
name). One module a command, or a few that belong together; it is imported when one is called, so
that ``--help`` is quick.
What a command prints goes through ``dispatcher/terminal/console.py``: tables on a terminal, plain
lines in a pipe, one JSON document with ``--json``. Progress and notes go to stderr, answers to
stdout.
"""
