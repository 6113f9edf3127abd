"""Conformance tests of a platform: they try with real attempts all that bequeath relies on.

    pytest -p dispatcher.conformance.plugin --pyargs dispatcher.conformance \\
        --service service.yml

``service.yml`` holds the section ``trainingService`` of an experiment file: one service, or a list
of several. Each worker of it is tried. ``docs/backends.md`` has more; only ``plugin.py`` and
``test_*.py`` need pytest.
"""
