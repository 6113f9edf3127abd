"""Text for a terminal: tables, numbers, colours.

`console` prints; all else makes text. Nothing here knows a command.
"""
