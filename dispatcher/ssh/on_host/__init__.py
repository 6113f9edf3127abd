"""Programs that run on a machine, by its own Python (3.9 or later), sent with the command.

They import nothing but the standard library, take arguments, read stdin, and print one line of
JSON. Nothing here is imported by us.
"""
