"""Files of attempts, read where they lie: on this machine, or by SSH on another one.

``here.LocalFiles`` and ``there.SshFiles`` are :class:`dispatcher.ports.AttemptFiles`, and both do
it by the same two programs, which need nothing but a Python of 3.9 or later. Both get
``whereabouts.Whereabouts``.
"""
