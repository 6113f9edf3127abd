"""``bequeath run launch.py``: scripts that start experiments by ``nni.experiment``.

Such a script is run unchanged, in a process where ``nni.experiment`` is ours: its settings become
an experiment file of NNI's (``settings.py``), its ``Experiment`` is a handle on one of ours
(``experiment.py``) that answers in NNI's records (``../records.py``).
"""
