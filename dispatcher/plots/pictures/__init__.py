"""Pictures of an experiment, as PNG files.

Progress and lineage are drawn from queries, the others from the records of
:mod:`dispatcher.plots.shapes`. matplotlib is imported when the first picture is drawn, and only its
file-writing part: no window, no display, no state shared with an author's own plots.
"""

from __future__ import annotations

from dispatcher.plots.pictures.draw import check_ending, draw

__all__ = ["check_ending", "draw"]
