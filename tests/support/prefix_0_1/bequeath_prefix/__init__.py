"""A platform for bequeath: trials wherever a command of yours starts programs."""

from bequeath_prefix.platform import PREFIX

__all__ = ["PREFIX"]
