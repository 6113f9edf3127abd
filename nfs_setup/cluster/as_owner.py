"""Use of a share by its owner: root of a client is nobody there."""

from __future__ import annotations

from nfs_setup.cluster.ground import Ground
from nfs_setup.cluster.members import Inventory, Member
from nfs_setup.request import ServerRequest

_BECOME = """\
import grp, os, pwd, sys
user, group = sys.argv[1:3]
try:
    account = pwd.getpwuid(int(user)) if user.isdigit() else pwd.getpwnam(user)
except KeyError:
    account = None
if account is None and not user.isdigit():
    sys.exit("there is no user %r" % user)
number = account.pw_uid if account else int(user)
own = account.pw_gid if account else number
group = own if not group else int(group) if group.isdigit() else grp.getgrnam(group).gr_gid
if account:
    os.initgroups(account.pw_name, group)
else:
    os.setgroups([group])
os.setgid(group)
os.setuid(number)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def as_owner(inventory: Inventory, member: Member, ground: Ground) -> tuple[str, ...]:
    """The words to put before a command there so that the owner of the share runs it.

    Args:
        inventory: names the owner of the share.
        member: the machine.
        ground: what was found there.

    Returns:
        Nothing where the inventory names no owner, or where we are not root: then the user of
        the login runs it.
    """
    share = inventory.server.request
    assert isinstance(share, ServerRequest)
    if ground.rootless or not share.owner:
        return ()
    return (*ground.become, member.python, "-I", "-c", _BECOME, share.owner, share.group)
