"""The links that make services start at boot, so that they can be put back as they were.

Enabling and disabling are not inverse: Debian's update-rc.d renames links of several run
levels and makes some for a systemd that does not even run.
"""

from __future__ import annotations

import posixpath

from nfs_setup.host import Host

_LEVELS = tuple(f"/etc/rc{level}.d" for level in "0123456S")
_UNITS = "/etc/systemd/system"

#: A path, and where it leads; an empty text for a folder of links.
Links = dict[str, str]


def boot_links(host: Host) -> Links:
    """All links in the folders of run levels and of systemd's own settings, and the folders."""
    links: Links = {}
    for folder in (*_LEVELS, _UNITS):
        _collect(host, folder, links, deeper=folder == _UNITS)
    return links


def difference(before: Links, after: Links) -> dict[str, list[str | None]]:
    """Changes, as ``path → [before, after]``; None: it is not there."""
    paths = sorted({*before, *after})
    pairs = {path: [before.get(path), after.get(path)] for path in paths}
    return {path: pair for path, pair in pairs.items() if pair[0] != pair[1]}


def put_back(host: Host, changed: dict[str, list[str | None]]) -> None:
    """Links as before, unless somebody has changed them since. Folders go once they are empty."""
    now = boot_links(host)
    for path, (before, after) in sorted(changed.items(), reverse=True):
        if now.get(path) != after:
            continue
        if before is None and after == "":
            host.remove_folder(path)
        elif before is None or after is not None:
            host.remove(path)
    for path, (before, after) in sorted(changed.items()):
        if before is None or now.get(path) != after or host.stat(path) is not None:
            continue
        if before == "":
            host.make_folder(path, 0o755)
        else:
            host.make_link(path, before)


def _collect(host: Host, folder: str, links: Links, *, deeper: bool) -> None:
    if host.stat(folder) is None:
        return
    links[folder] = ""
    for name in host.names(folder):
        path = posixpath.join(folder, name)
        target = host.link(path)
        if target is not None:
            links[path] = target
        elif deeper and name.endswith((".wants", ".requires")):
            _collect(host, path, links, deeper=False)
