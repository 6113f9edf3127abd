"""``bequeath web``: the page and the REST interface, and the links that open them."""

from __future__ import annotations

import os
import socket as socket_module
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dispatcher.cli.arguments import Folder, Json
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.errors import PassingBackendError
from dispatcher.terminal.console import note, print_json, say

if TYPE_CHECKING:
    from dispatcher.web.instances import Instance
    from dispatcher.web.keys import Keys
    from dispatcher.web.settings import WebSettings

_DAYS = 7.0

_ONE_AT_A_TIME = (
    "one of --export, --link, --token, --new-token, --share, --shares, --revoke at a time"
)

#: Seconds that the page has to end when the experiment does.
_ENDS_S = 5.0


def web(
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="NUMBER",
            min=0,
            max=65535,
            help="The port; 0: any. [default: 8077]",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")
    ] = "127.0.0.1",
    socket: Annotated[
        Path | None,
        typer.Option(
            "--socket",
            metavar="PATH",
            help="Listen on a Unix socket, which only you may open.",
            show_default=False,
        ),
    ] = None,
    prefix: Annotated[
        str, typer.Option("--prefix", metavar="PATH", help="The path below which a proxy shows it.")
    ] = "",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME[:PORT]",
            help="A further name in the address bar of a browser. May be repeated.",
            show_default=False,
        ),
    ] = None,
    behind_proxy: Annotated[
        str,
        typer.Option(
            "--behind-proxy",
            metavar="NAME[:PORT]",
            help="The name of the proxy before it, which encrypts.",
        ),
    ] = "",
    tls_cert: Annotated[
        Path | None,
        typer.Option("--tls-cert", metavar="FILE", help="A certificate.", show_default=False),
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option(
            "--tls-key", metavar="FILE", help="The key of the certificate.", show_default=False
        ),
    ] = None,
    link: Annotated[
        bool, typer.Option("--link", help="Print a link to the page that is served already.")
    ] = False,
    token: Annotated[bool, typer.Option("--token", help="Print the token for scripts.")] = False,
    new_token: Annotated[
        bool,
        typer.Option("--new-token", help="Make a new token: all who are signed in are out."),
    ] = False,
    share: Annotated[
        str | None,
        typer.Option(
            "--share", metavar="NAME", help="Make a link that only reads.", show_default=False
        ),
    ] = None,
    days: Annotated[
        float, typer.Option("--days", metavar="DAYS", help="Days until the share ends.")
    ] = _DAYS,
    with_logs: Annotated[
        bool,
        typer.Option("--with-logs", help="The share, or the file, has what trials wrote, too."),
    ] = False,
    shares: Annotated[bool, typer.Option("--shares", help="List the shares.")] = False,
    revoke: Annotated[
        str | None,
        typer.Option("--revoke", metavar="NAME", help="Take a share back.", show_default=False),
    ] = None,
    nni_port: Annotated[
        list[str] | None,
        typer.Option(
            "--nni-port",
            metavar="PORT[=EXPERIMENT]",
            help="Answer NNI's REST for an experiment at this port, too, as `bequeath nni serve` "
            "does. May be repeated.",
            show_default=False,
        ),
    ] = None,
    export: Annotated[
        str | None,
        typer.Option(
            "--export",
            metavar="EXPERIMENT",
            help="Write a run as one HTML file that needs no server.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="With `--export`, the file, replaced if it exists. [default: ID.html]",
            show_default=False,
        ),
    ] = None,
    most: Annotated[
        float,
        typer.Option(
            "--most",
            metavar="MIB",
            min=0.5,
            max=500,
            help="With `--export`, the file's size at most: it says what it leaves out.",
        ),
    ] = 20.0,
    with_parent: Annotated[
        bool, typer.Option("--with-parent", help="End when stdin ends.", hidden=True)
    ] = False,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Serve a page for all experiments of yours, and a REST interface; Ctrl-C ends it.

    The link that it prints opens the page once, within ten minutes; `--link` prints another.
    It listens on this machine only, unless it encrypts or a proxy before it is named. The page
    reads stores, and asks each head once a second at most, however many look. `--export` writes the
    page of one run into a file instead, for people who have neither the run nor bequeath.
    """
    from dispatcher.cli.web_export import write_run
    from dispatcher.web.keys import Keys
    from dispatcher.web.settings import PORT, WebSettings, state_folder

    named = [each is not None for each in (export, share, revoke)]
    if sum([link, token, new_token, shares, *named]) > 1:
        raise typer.BadParameter(_ONE_AT_A_TIME)
    if export is not None:
        write_run(export, out, folder, most=most, logs=with_logs, as_json=as_json)
        return
    state = state_folder()
    if any([link, token, new_token, shares, *named]):
        keys = Keys(state)
        if link:
            _say(_new_link(state, port, socket, keys), "link", as_json=as_json)
        elif token or new_token:
            _say(keys.renew() if new_token else keys.token, "token", as_json=as_json)
        elif share is not None:
            _share(keys, state, share, days, with_logs=with_logs, as_json=as_json)
        elif revoke is not None:
            keys.revoke(revoke)
            note(f"the share {revoke} counts no more")
        else:
            _list(keys, as_json=as_json)
        return
    settings = WebSettings(
        host=host,
        port=PORT if port is None else port,
        socket=socket,
        prefix=prefix.rstrip("/"),
        allowed_hosts=tuple(allow_host or ()),
        behind_proxy=behind_proxy,
        tls_cert=tls_cert,
        tls_key=tls_key,
        base=folder,
        state=state,
    )
    settings.check()
    with _nni_served(nni_port or []):
        _serve(settings, with_parent=with_parent, as_json=as_json)


@contextmanager
def served_meanwhile() -> Iterator[None]:
    """Serve the page as long as this lasts, by a process of its own, and print a link to it; where
    one is served already, print a link to that. What goes wrong with it is no reason to end."""
    from dispatcher.errors import DispatcherError
    from dispatcher.experiments.processes import child_environment
    from dispatcher.web.instances import running
    from dispatcher.web.keys import Keys
    from dispatcher.web.settings import PORT, state_folder

    started: subprocess.Popen[bytes] | None = None
    try:
        state = state_folder()
        keys = Keys(state)
        if running(state, keys.token):
            link = _new_link(state, None, None, keys)
        else:
            port = PORT if _is_free(PORT) else 0
            words = ("web", "--with-parent", "--port", str(port))
            started = subprocess.Popen(
                [sys.executable, "-P", "-m", "dispatcher.cli", *words],
                env=child_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the experiment
            )
            assert started.stdout is not None
            link = started.stdout.readline().decode().strip()  # empty if it has ended
        note("look at it in a browser, as long as it runs:" if link else "the page is not served")
        if link:
            note(link)  # alone on its line, for editors that carry ports
    except DispatcherError as error:
        note(f"the page is not served: {error.message}")
    try:
        yield
    finally:
        if started is not None:
            _end(started)


@contextmanager
def _nni_served(wanted: list[str]) -> Iterator[None]:
    """Serve NNI's REST as long as this lasts, at each port by a process of its own."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        for one in wanted:
            started.append(_begin_nni(one))
            assert started[-1].stdout is not None
            address = started[-1].stdout.readline().decode().strip()
            if not address:
                raise PassingBackendError(f"NNI's REST is not served: --nni-port {one}")
            note(f"NNI's REST: {address}")
        yield
    finally:
        for process in started:
            _end(process)


def _begin_nni(given: str) -> subprocess.Popen[bytes]:
    from dispatcher.experiments.processes import child_environment

    port, equals, experiment = given.partition("=")
    is_port = port.isascii() and port.isdigit() and int(port) < 65_536
    if not is_port or (equals and not experiment):
        raise typer.BadParameter(
            f"{given!r} is not PORT or PORT=EXPERIMENT", param_hint="'--nni-port'"
        )
    words = ["nni", "serve", *([experiment] if experiment else []), "--port", port]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "dispatcher.cli", *words, "--with-parent"],
        env=child_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for us; it ends when its stdin does
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(timeout=_ENDS_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


def _is_free(port: int) -> bool:
    with socket_module.socket(socket_module.AF_INET, socket_module.SOCK_STREAM) as probe:
        probe.setsockopt(socket_module.SOL_SOCKET, socket_module.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _serve(settings: WebSettings, *, with_parent: bool, as_json: bool) -> None:
    from dispatcher.web.server import serve

    def ready(instance: Instance, link: str) -> None:
        if instance.socket:
            note(f"the page is served at the socket {instance.socket}; sign in with")
        elif not with_parent:
            note(f"the page is served at {instance.address}/ by process {instance.pid}; open it by")
        _say(link, "link", as_json=as_json)
        sys.stdout.flush()

    serve(settings, ready, with_stdin=with_parent)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(ExitCode.OK)  # a thread may still wait for a machine elsewhere


def _say(text: str, key: str, *, as_json: bool) -> None:
    if as_json:
        print_json({key: text})
    else:
        say(text)


def _new_link(state: Path, port: int | None, path: Path | None, keys: Keys) -> str:
    from dispatcher.web.instances import chosen

    instance = chosen(state, port, path, keys.token)
    made = instance.ask("POST", "/api/v1/links", keys.token)
    return f"{instance.address}{made['path']}"


def _share(
    keys: Keys, state: Path, name: str, days: float, *, with_logs: bool, as_json: bool
) -> None:
    from dispatcher.web.instances import running

    token = keys.share(name, days, logs=with_logs)
    served = running(state, keys.token)
    address = served[0].address if served else "http://127.0.0.1:8077"
    link = f"{address}/login?share={token}"
    if as_json:
        print_json({"share": name, "token": token, "link": link, "days": days, "logs": with_logs})
        return
    note(f"whoever has this link may read for {days:g} days; bequeath web --revoke {name} ends it")
    say(link)


def _list(keys: Keys, *, as_json: bool) -> None:
    now = time.time()
    rows: list[dict[str, Any]] = [
        {
            "share": name,
            "created_at": one.created,
            "expires_at": one.expires,
            "logs": one.logs,
            "over": one.expires <= now,
        }
        for name, one in sorted(keys.shares().items())
    ]
    if as_json:
        print_json({"shares": rows})
        return
    if not rows:
        note("there are no shares; bequeath web --share NAME makes one")
    for row in rows:
        left = (float(row["expires_at"]) - now) / 86_400
        until = "is over" if left <= 0 else f"ends in {left:.1f} days"
        say(f"{row['share']}  {until}  {'with logs' if row['logs'] else 'without logs'}")
