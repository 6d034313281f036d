# The module holds assertions of many tests: a failure shows what was compared.
import pytest

pytest.register_assert_rewrite("tests.studies.visitor")
