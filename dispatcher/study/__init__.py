"""Studies: searches that are led by the program which asks for trials and tells their results.

Read ``record.py`` first (core and journal in this process), then ``study.py`` (what users call).
``opening.py`` makes or finds the experiment, ``proposing.py`` drives its tuner, ``trial.py`` is one
trial as a program sees it, ``warm_start.py`` reads results of other searches.
"""

from __future__ import annotations

from dispatcher.study.study import Study
from dispatcher.study.trial import StudyTrial
from dispatcher.study.warm_start import WarmStart

__all__ = ["Study", "StudyTrial", "WarmStart"]
