"""The agent: parent of the trials on a host, on behalf of a head that may come and go.

It starts attempts and reports how they ended, relays their messages (numbered, and kept until
the head has them on disk), bounds their output, ends the processes they leave behind, and ends
itself after ``headGrace`` without a head. It decides nothing about trials.

Read ``agent.py`` (the loop), ``events.py`` (what the others note for it), ``attempts/attempts.py``
(an attempt's way through it), then the runners: ``runners/fresh.py``, ``forked.py`` with
``zygote.py``, ``warm.py`` with ``worker.py``.
"""
