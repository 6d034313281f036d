"""How gunicorn serves the site (Procfile). PORT, WEB_BIND and WEB_WORKERS come from the environment."""

import gc
import os
from typing import Any

bind = os.environ.get("WEB_BIND", "127.0.0.1:" + os.environ.get("PORT", "8000"))
workers = int(os.environ.get("WEB_WORKERS", "2"))
preload_app = True  # loads the code once for all workers
worker_class = "gthread"
threads = 4
# Participants' browsers keep their connection between two ratings: no new handshake per image.
keepalive = 15
timeout = 60
# The path without its query string, no address and no referrer: all of them may tell who a participant is.
accesslog = "-"
access_log_format = "%(m)s %(U)s %(s)s %(b)s bytes %(M)s ms"
# Its socket would lie in the home folder, one for all sites of a user.
control_socket_disable = True


def when_ready(server: Any) -> None:
    """Load what the first request would have to wait a second for, once for all workers.

    And spare their garbage collector the loaded code: 200,000 objects that stay, 0.1 s each time it looks.
    """
    from django.urls import reverse  # the settings are there only now

    reverse("health")
    gc.collect()
    gc.freeze()
