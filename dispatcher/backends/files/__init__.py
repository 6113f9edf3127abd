"""What attempts leave behind, read where it lies: on this machine, or by SSH on another one.

``here.LocalFiles`` and ``there.SshFiles`` are :class:`dispatcher.ports.AttemptFiles`, and both do
it by the same two programs, which need nothing but a Python of 3.9 or later. What both are told
is ``whereabouts.Whereabouts``.
"""
