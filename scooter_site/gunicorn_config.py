"""How gunicorn serves the site (Procfile). PORT, WEB_BIND and WEB_WORKERS come from the environment."""

import gc
import os
import socket
import struct
from typing import Any

bind = os.environ.get("WEB_BIND", "127.0.0.1:" + os.environ.get("PORT", "8000"))
workers = int(os.environ.get("WEB_WORKERS", "2"))
preload_app = True  # loads the code once for all workers
worker_class = "gthread"
threads = 4
# None of these few threads waits for a visitor who has connected and says nothing, as browsers do in advance: the
# kernel keeps such a connection to itself for so long. And none waits longer than this for the rest of a request.
IDLE_SECONDS, SILENCE_SECONDS = 30, 20
# Participants' browsers keep their connection between two ratings: no new handshake per image.
keepalive = 15
timeout = 60
# The path without its query string, no address and no referrer: all of them may tell who a participant is.
accesslog = "-"
access_log_format = "%(m)s %(U)s %(s)s %(b)s bytes %(M)s ms"
# Its socket would lie in the home folder, one for all sites of a user.
control_socket_disable = True


def when_ready(server: Any) -> None:
    """Tell the kernel what to wait for, and load what the first request would have to wait a second for.

    Once for all workers. And spare their garbage collector the loaded code: 200,000 objects that stay, 0.1 s each time
    it looks.
    """
    for listener in server.LISTENERS:
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", SILENCE_SECONDS, 0))
        if listener.sock.family != socket.AF_UNIX and hasattr(socket, "TCP_DEFER_ACCEPT"):  # Linux has it
            listener.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, IDLE_SECONDS)

    from django.urls import reverse  # the settings are there only now

    reverse("health")
    gc.collect()
    gc.freeze()
