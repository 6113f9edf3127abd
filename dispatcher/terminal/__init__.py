"""Text for a terminal: tables, numbers, colours, and texts of others made safe to print.

`console` prints; all else makes text. Nothing here knows a command.
"""
