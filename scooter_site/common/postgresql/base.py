"""A connection that keeps the plans of statements, and asks the server whether it is alive only in doubt."""

import select
from collections.abc import Callable, Sequence
from typing import Any

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """With CONN_HEALTH_CHECKS, Django sends ``SELECT 1`` at the first statement of every request.

    That is a round trip for each image and each rating. But a server that ends a connection (restart, crash,
    failover) closes its socket, and a closed socket has something to read: the end. Between two requests there is
    nothing else to read, so looking at the socket, which asks nobody, tells the same. But for a machine that vanishes
    without closing anything: there the next statement fails after ``tcp_user_timeout`` (docs/settings.md).

    Plans belong to one session of the server, so a pooler has to give each connection a session of its own.
    """

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """A connection on which nothing is prepared yet."""
        self._prepared: set[str] = set()
        return super().get_new_connection(conn_params)

    def prepared(self, name: str, definition: Callable[[], tuple[str, Sequence[Any]]]) -> str:
        """Have the statement of this name planned on the open connection, if it is not yet; gives the name.

        ``definition`` gives its SQL with $1, $2, ... for what EXECUTE is given, and the parameters that are the same
        each time (%s). PREPARE belongs to no transaction: a ROLLBACK does not undo it.
        """
        if name not in self._prepared:
            with self.cursor() as cursor:
                sql, parameters = definition()
                cursor.execute(f"PREPARE {name} AS {sql}", parameters)
            self._prepared.add(name)
        return name

    def is_usable(self) -> bool:
        """Whether statements can be sent. After an error of the database, it is asked, and plans are made anew.

        For a plan is of no use any more when, say, a migration has changed the type of a column that it reads.
        """
        if self.connection is None or self.errors_occurred or self._has_something_to_read():
            return super().is_usable() and self._forget_plans()
        return True

    def _forget_plans(self) -> bool:
        self.connection.execute("DEALLOCATE ALL")  # a cursor of Django's would have the connection looked at again
        self._prepared.clear()
        return True

    def _has_something_to_read(self) -> bool:
        if self.connection.closed:
            return True
        poll = select.poll()
        poll.register(self.connection.fileno(), select.POLLIN)
        return bool(poll.poll(0))
