"""Assessors that come with bequeath: they stop trials that are not worth going on with.

Steps are intermediate results, counted from 1; the value compared is a number, or the ``default``
of a mapping. NaN and infinity count as worse than any number.
"""

from __future__ import annotations

from tuners.assessors.curvefitting import CurvefittingAssessor
from tuners.assessors.medianstop import MedianstopAssessor
from tuners.assessors.threshold import ThresholdAssessor

__all__ = ["CurvefittingAssessor", "MedianstopAssessor", "ThresholdAssessor"]
