"""``bequeath run launch.py``: scripts that start experiments by ``nni.experiment``.

Such a script is run as it is, in a process where ``nni.experiment`` is ours: its settings become an
experiment file of NNI's (``settings.py``), its ``Experiment`` is a hand on one of ours
(``experiment.py``) that answers in NNI's records (``records.py``).
"""
