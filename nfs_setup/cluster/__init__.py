"""One share for many machines: which request goes to which host, in which order, and what failed.

:mod:`~nfs_setup.cluster.inventory` names the server and the clients,
:mod:`~nfs_setup.cluster.plan` puts their requests into waves, and
:mod:`~nfs_setup.cluster.run_plan` carries them out, several hosts at once, over whatever
:class:`~nfs_setup.cluster.members.Remote` it is given. Nothing here opens a connection or reads a
file of the user's; this package stays where the command is run and never travels to a host.
"""
