"""A plugin of pytest: of the tests only those that use a database. On another one the rest would be the same."""

import pytest

FIXTURES = {"db", "transactional_db", "live_server"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen, others = [], []
    for item in items:
        uses_it = item.get_closest_marker("django_db") or FIXTURES & set(getattr(item, "fixturenames", ()))
        (chosen if uses_it else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = chosen
