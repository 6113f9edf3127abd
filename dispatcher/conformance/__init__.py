"""Conformance of a platform: what bequeath relies on, tried with real attempts.

    pytest -p dispatcher.conformance.plugin --pyargs dispatcher.conformance \\
        --service service.yml

``service.yml`` holds what stands below ``trainingService`` of an experiment file: one service, or
a list of several. Each worker of it is tried. ``docs/backends.md`` has more; importing this needs
pytest nowhere but in ``plugin.py`` and ``test_*.py``.
"""
