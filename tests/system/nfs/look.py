"""What a machine is like, to be compared before and after."""

from __future__ import annotations

from tests.system.nfs.rig import Machine

#: Kind, mode, owner, target and content of each file that configures something, and of each
#: that was written below /usr, /opt and /var (those of this machine lie below what a guest
#: writes); packages by name, version and state; what runs, is mounted and is exported.
#:
#: Left out is what package managers keep for themselves: caches, logs, lists of what could be
#: installed, dpkg's copy of what it knew before, the numbered history of ucf. And our lock, in
#: memory that a restart clears.
_LOOK = r"""
cd /
named() {
  find etc srv mnt home root -xdev -path etc/mtab -prune -o "$@"
  find var/lib/bequeath var/lib/nfs "$@" 2>/dev/null
  find .written/*/files ! -type d \
    ! -path '.written/var/files/cache/*' ! -path '.written/var/files/log/*' \
    ! -path '.written/var/files/lib/apt/*' ! -path '.written/var/files/lib/ucf/hashfile.*' \
    ! -path '.written/var/files/lib/dpkg/status-old' ! -path '.written/var/files/lib/nfs/*' "$@"
}
named -printf '%p %y %m %U %G %l\n' | LC_ALL=C sort -u
named -type f -print0 | LC_ALL=C sort -zu | xargs -0 sha256sum
dpkg-query -W -f '${binary:Package} ${Version} ${db:Status-Abbrev}\n'
grep -c nfs4 proc/mounts; cat proc/fs/nfsd/threads 2>/dev/null || echo 0
exportfs -s 2>/dev/null; ps -e -o comm= | grep -E '^(rpc|nfsd|mount|apt|dpkg)' | sort
exit 0
"""


def look(machine: Machine) -> list[str]:
    """Everything that undoing has to bring back, as lines."""
    ran = machine.run("bash", "-c", _LOOK, limit_s=300)
    assert ran.code == 0, ran.err[-500:]
    return ran.out.splitlines()


def changed(before: list[str], after: list[str]) -> list[str]:
    """What differs, for a test to show: lines that went and lines that came."""
    gone, come = set(before) - set(after), set(after) - set(before)
    return [f"-{line}" for line in sorted(gone)] + [f"+{line}" for line in sorted(come)]
