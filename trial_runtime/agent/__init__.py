"""The agent: parent of the trials on a host, on behalf of a head that may come and go.

It starts attempts and tells how they ended, relays what they say (numbered, and kept until
the head has it on disk), bounds their output, ends what they leave behind, and ends itself
when no head has been heard of for ``headGrace``. It decides nothing about trials.

Read ``agent.py`` (the loop), ``attempts.py`` (an attempt's way through it), then the runners:
``fresh.py``, ``forked.py`` with ``zygote.py``, ``warm.py`` with ``worker.py``.
"""
