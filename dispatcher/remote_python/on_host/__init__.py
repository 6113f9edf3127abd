"""Programs that run on a machine, by its own Python (3.9 or later).

``dispatcher/remote_python/bundle.py`` packs them. They import nothing but the standard library and
one another. :class:`LocalFiles` imports one of them here, since what it does there is done here in
the same way. The verb ``files`` is :mod:`trial_runtime.attempt_folder`, which agents have, too.
"""
