"""Arguments and options of ``bequeath nfs``, each written down once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

#: Of `nfs server`.
ExportedFolder = Annotated[str, typer.Argument(metavar="DIR", help="The folder to export.")]

Clients = Annotated[
    list[str],
    typer.Argument(
        metavar="CLIENT",
        help="Clients that may mount it: host names, addresses, networks (10.0.0.0/24) or "
        "@netgroups.",
    ),
]

Owner = Annotated[
    str,
    typer.Option(
        metavar="USER",
        help="Owner of the folder, by name or number: the user that runs the trials. If not "
        "given, a new folder belongs to the user who called sudo.",
    ),
]

Group = Annotated[
    str, typer.Option(metavar="GROUP", help="Group of the folder; the owner's own if not given.")
]

Mode = Annotated[
    str,
    typer.Option(
        metavar="MODE", help="Mode of the folder; 2770 (set-gid) for a folder that is made."
    ),
]

ExportReadOnly = Annotated[bool, typer.Option("--read-only", help="Clients may not write.")]

Flavours = Annotated[
    str, typer.Option(metavar="FLAVOURS", help="Security: sys, krb5, krb5i, krb5p, or sys:krb5p.")
]

NoRootSquash = Annotated[
    bool, typer.Option("--no-root-squash", help="Let root of any client be root here.")
]

Async = Annotated[
    bool, typer.Option("--async", help="Answer before it is on disk; a crash loses writes.")
]

Nfs3 = Annotated[bool, typer.Option("--nfs3", help="Leave NFSv3 and rpcbind as they are, not off.")]

OpenFirewall = Annotated[
    bool,
    typer.Option("--open-firewall", help="Set the rule (firewalld, ufw), not just print it."),
]

SharesItsFileSystem = Annotated[
    bool,
    typer.Option(
        "--shares-its-file-system",
        help="Allow a folder that is no file system of its own: root of a client may then "
        "reach all of the file system that it lies on.",
    ),
]

AllowWildcards = Annotated[
    bool, typer.Option("--allow-wildcards", help="Allow clients such as *.example.org.")
]

AllowEverybody = Annotated[
    bool, typer.Option("--allow-everybody", help="Allow '*' and networks of all addresses.")
]

#: Of `nfs client`.
Source = Annotated[str, typer.Argument(metavar="SERVER:/DIR", help="The share.")]

MountPoint = Annotated[str, typer.Argument(metavar="DIR", help="Where to mount it.")]

Last = Annotated[
    str,
    typer.Option(
        metavar="HOW",
        help="How the mount is made permanent: automount (units of systemd), fstab, no (until the "
        "next boot), or auto: automount where systemd runs, else fstab.",
    ),
]

NfsVersion = Annotated[
    str, typer.Option("--nfs-version", metavar="VERSION", help="4.2, 4.1, 4.0, or 4.")
]

Flavour = Annotated[
    str, typer.Option(metavar="FLAVOUR", help="Security: sys, krb5, krb5i or krb5p.")
]

MountReadOnly = Annotated[bool, typer.Option("--read-only", help="Mount it read-only.")]

Connections = Annotated[
    int, typer.Option(metavar="N", min=1, max=16, help="Connections to the server.")
]

AttributeAge = Annotated[
    int,
    typer.Option(
        metavar="SECONDS",
        min=0,
        help="How old attributes may be; 0: the kernel's own times (3 to 60 s), which fit.",
    ),
]

NoExec = Annotated[bool, typer.Option("--noexec", help="Run no program from it.")]

AccessTimes = Annotated[bool, typer.Option("--atime", help="Keep times of reading.")]

#: Of `nfs undo`.
UndoTarget = Annotated[
    str,
    typer.Argument(
        metavar="DIR",
        help="An exported folder or a mount point; all if left out.",
        show_default=False,
    ),
]

KeepPackages = Annotated[
    bool, typer.Option("--keep-packages", help="Leave installed what was installed for it.")
]

WhileClientsUseIt = Annotated[
    bool,
    typer.Option(
        "--while-clients-use-it",
        help="Undo it while clients use it: their programs get errors, and lose work.",
    ),
]

#: Of all that change this machine.
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Show each diff and command; change nothing. Needs no root."),
]

#: Of `nfs verify`.
VerifiedFolder = Annotated[
    str, typer.Argument(metavar="DIR", help="The share, where it is mounted (or any folder).")
]

FromHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="HOST[:DIR]",
        help="Ask this machine, too, over SSH ([user@]host, or a Host of ~/.ssh/config), "
        "where the share is at DIR, or at the same place. Can be given again.",
    ),
]

NotHere = Annotated[bool, typer.Option("--not-here", help="Ask only the machines of --from.")]

Quick = Annotated[
    bool,
    typer.Option("--quick", help="Each machine alone, in some seconds: no big file, no pairs."),
]

BigFileSize = Annotated[str, typer.Option(metavar="SIZE", help="Size of the big file: 64M, 2G.")]

Wait = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0.1,
        max=600,
        help="Time to wait for the files that another machine has made.",
    ),
]

OtherPython = Annotated[
    str, typer.Option(metavar="PROGRAM", help="A Python of 3.9 or later on the other machines.")
]

#: Of `nfs cluster`.
InventoryFile = Annotated[
    Path,
    typer.Argument(metavar="INVENTORY", help="File that names the server and its clients (YAML)."),
]

ClusterDryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what each host would do; change nothing.")
]

ClusterUndo = Annotated[
    bool, typer.Option("--undo", help="Take it back: on all clients, then on the server.")
]

ClusterStatus = Annotated[
    bool, typer.Option("--status", help="Show the state of each host; change nothing.")
]

ClusterVerify = Annotated[
    bool, typer.Option("--verify", help="Measure the share from all clients; see nfs verify.")
]

ClusterQuick = Annotated[
    bool, typer.Option("--quick", help="With --verify: each client alone, in some seconds.")
]

ClusterKeepPackages = Annotated[
    bool, typer.Option("--keep-packages", help="With --undo: leave installed what was installed.")
]

AtOnce = Annotated[
    int, typer.Option(metavar="N", min=1, max=200, help="Hosts worked on at the same time.")
]
