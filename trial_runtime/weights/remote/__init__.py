"""Weights roots that are no folder: any URL that fsspec knows.

Trials never see one. Each attempt has a folder on its host that looks like the weights root
(its *view*); before it starts, its agent puts its parent's weights there, and when it has
ended, the agent copies what it published to the remote root, before it reports the end::

    <root>/<experiment>/objects/<save path>/<BLAKE3>         data files, named by their bytes
    <root>/<experiment>/published/<save path>/<digest>.json  the record of one publication, last

No name is ever written twice with different bytes, so nothing can be stale: what is not there
yet is waited for. A record is named by the digest that the head has committed; the weights of
another attempt lie beside it under another name, and nobody asks for them.

Read first: ``record.py`` (what a publication is), ``pushing.py``, ``pulling.py``; then
``place.py`` (bytes on a remote file system, tried again), ``storage.py`` (retention).
"""
