"""``bequeath nni serve``: NNI's REST of an experiment, and NNI's own page, on a port."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dispatcher.cli.arguments import Experiment, find_handle
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.errors import PassingBackendError, UserError
from dispatcher.nni.commands.arguments import UrlPrefix
from dispatcher.terminal.console import note, say

if TYPE_CHECKING:
    from dispatcher.nni.rest.settings import EndpointSettings

#: The hidden option of a port that an experiment has opened for itself.
UNTIL_OVER = "--until-over"


def serve(
    experiment: Experiment = None,
    port: Annotated[
        int,
        typer.Option("--port", "-p", metavar="PORT", min=0, max=65535, help="The port; 0: any."),
    ] = 8080,
    url_prefix: UrlPrefix = None,
    page: Annotated[
        Path | None,
        typer.Option(
            "--page",
            metavar="DIR",
            help="The environment in which NNI 3.0 is installed, whose page is then shown. "
            "Default: this one, if it is here.",
            show_default=False,
        ),
    ] = None,
    with_parent: Annotated[
        bool, typer.Option("--with-parent", help="End when stdin ends.", hidden=True)
    ] = False,
    until_over: Annotated[
        bool, typer.Option(UNTIL_OVER, help="End with the experiment.", hidden=True)
    ] = False,
) -> None:
    """Answer NNI's REST for one experiment, and show NNI's own page; Ctrl-C ends it.

    It listens on this machine only, and answers you only. Scripts and clients written for NNI find
    it at `http://localhost:PORT/api/v1/nni`; the experiment may run, or be over.
    """
    from dispatcher.nni.rest.portal import installed_page
    from dispatcher.nni.rest.process import serve as serve_endpoint
    from dispatcher.nni.rest.settings import EndpointSettings, checked_prefix

    settings = EndpointSettings(
        folder=find_handle(experiment, purpose="use").folder,
        port=port,
        prefix=checked_prefix(url_prefix),
        page=installed_page(page),
        until_over=until_over,
    )

    def ready(settings: EndpointSettings) -> None:
        if not with_parent and not until_over:
            what = "NNI's page and REST" if settings.page is not None else "NNI's REST"
            note(f"{what} of {settings.folder.name}, for you only")
        say(f"{settings.address}/")
        sys.stdout.flush()

    serve_endpoint(settings, ready, with_stdin=with_parent)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(ExitCode.OK)  # a thread may still wait for a machine elsewhere


def demand_free(port: int | None) -> None:
    """Raise ``UserError`` if a port was asked for that is taken, before anything is begun."""
    from dispatcher.nni.rest.peers import is_free

    if port is not None and not is_free(port):
        raise UserError(
            f"a program listens at port {port} already",
            hint="name another one, or leave --port out",
            where="--port",
        )


def open_in_background(folder: Path, port: int | None, url_prefix: str | None) -> None:
    """Open a port for an experiment, by a process of its own that ends with it.

    Args:
        folder: of the experiment.
        port: None: none was asked for, and none is opened.
        url_prefix: the path below which it answers; None for none.

    Raises:
        PassingBackendError: it could not be opened; the experiment goes on.
    """
    if port is None:
        return
    from dispatcher.experiments.processes import child_environment

    words = ["nni", "serve", str(folder), "--port", str(port), UNTIL_OVER]
    words += [] if url_prefix is None else ["--url_prefix", url_prefix]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "dispatcher.cli", *words],
        env=child_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # it goes on when the terminal is closed
    )
    assert process.stdout is not None
    assert process.stderr is not None
    address = process.stdout.readline().decode().strip()
    process.stdout.close()
    if not address:
        text = process.stderr.read().decode(errors="replace").strip()
        process.stderr.close()
        raise PassingBackendError(
            f"NNI's REST is not served: {text or 'its process has ended'}",
            hint=f"the experiment goes on; open it by: bequeath nni serve {folder.name}",
        )
    process.stderr.close()
    note(f"NNI's page and REST: {address}")
