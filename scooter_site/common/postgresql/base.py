"""A connection that asks the server whether it is alive only when there is reason to doubt it."""

import select

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """With CONN_HEALTH_CHECKS, Django sends ``SELECT 1`` at the first statement of every request.

    That is a round trip for each image and each rating. But a server that ends a connection (restart, crash,
    failover, a pooler's time-out) closes its socket, and a closed socket has something to read: the end. Between two
    requests there is nothing else to read, so looking at the socket, which asks nobody, tells the same.
    """

    def is_usable(self) -> bool:
        """Whether statements can be sent. After an error of the database, it is asked."""
        if self.connection is None or self.errors_occurred or self._has_something_to_read():
            return super().is_usable()
        return True

    def _has_something_to_read(self) -> bool:
        if self.connection.closed:
            return True
        poll = select.poll()
        poll.register(self.connection.fileno(), select.POLLIN)
        return bool(poll.poll(0))
