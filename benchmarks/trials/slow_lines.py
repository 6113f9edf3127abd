"""Lines of a given speed: ``slow_lines BYTES_PER_S HOST:PORT …`` prints the ports of this machine's
loopback that lead there, as a list in JSON, and serves until its stdin ends."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time

PIECE = 1 << 16
#: How far a line may be ahead of its speed (seconds).
BURST_S = 0.05


def pump(source: socket.socket, target: socket.socket, rate: float) -> None:
    """Carry bytes in one direction, no faster than the line is."""
    free_at = time.monotonic()
    try:
        while piece := source.recv(PIECE):
            target.sendall(piece)
            now = time.monotonic()
            free_at = max(free_at, now - BURST_S) + len(piece) / rate
            if free_at > now:
                time.sleep(free_at - now)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(listener: socket.socket, there: tuple[str, int], rate: float) -> None:
    """Take connections for ever."""
    while True:
        near, _ = listener.accept()
        far = socket.create_connection(there)
        for one in (near, far):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for pair in ((near, far), (far, near)):
            threading.Thread(target=pump, args=(*pair, rate), daemon=True).start()


def main() -> None:
    rate = float(sys.argv[1])
    ports = []
    for word in sys.argv[2:]:
        host, _, port = word.rpartition(":")
        listener = socket.create_server(("127.0.0.1", 0))
        ports.append(listener.getsockname()[1])
        arguments = (listener, (host, int(port)), rate)
        threading.Thread(target=serve, args=arguments, daemon=True).start()
    print(json.dumps(ports), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
