"""Shared storage: NFS set up and taken back, and what is known of the mounts of this machine.

:func:`perform` takes a request (:mod:`nfs_setup.request`) and a :class:`LocalHost`, plans steps
(:mod:`nfs_setup.server`, :mod:`nfs_setup.client`), shows or makes them all or none
(:mod:`nfs_setup.transaction`), and notes in a ledger how each is taken back. It never decides
what is exported to whom: that is asked for. Only the standard library is used, and Python 3.9
is enough, since the same code runs on hosts that have nothing else; only the command line
imports this package. Read :mod:`nfs_setup.step` first.
"""

from nfs_setup.mounts import Advice, Mount, advice_on, mount_of

__all__ = ["Advice", "Mount", "advice_on", "mount_of"]
