"""Code with NNI's annotations (``'''@nni.variable(…)'''``): its search space, and what runs.

``annotations.py`` turns the strings into code, ``smart_parameters.py`` gives each ``nni.choice(…)``
and its like a key and makes the search space of them, ``folder.py`` does both for a folder of code.
Each edit keeps the number of lines, so that tracebacks point into the author's own file.
"""

from dispatcher.nni.annotated.folder import (
    BadAnnotation,
    annotated_space,
    rewrite_annotated,
)

__all__ = ["BadAnnotation", "annotated_space", "rewrite_annotated"]
