"""Pictures of an experiment, as PNG files: progress, parallel coordinates, lineage.

matplotlib is imported when the first picture is drawn, and only its file-writing part: no
window, no display, no state shared with an author's own plots.
"""

from __future__ import annotations

from dispatcher.plots.pictures.draw import draw_lineage, draw_parallel, draw_progress

__all__ = ["draw_lineage", "draw_parallel", "draw_progress"]
