"""A board held both; from now on it holds demonstration data or real data. One with only the former becomes theirs."""

from typing import Any

from django.db import migrations


def mark(apps: Any, schema_editor: Any) -> None:
    board_model, entry_model = (apps.get_model("leaderboard", name) for name in ("Board", "Entry"))
    with_real = entry_model.objects.filter(is_demo=False).values("board")
    with_demo = entry_model.objects.filter(is_demo=True).values("board")
    board_model.objects.filter(pk__in=with_demo).exclude(pk__in=with_real).update(
        is_demo=True, publication_policy="at_once"
    )


class Migration(migrations.Migration):
    dependencies = [("leaderboard", "0002_board_of_a_demonstration")]

    operations = [migrations.RunPython(mark, migrations.RunPython.noop)]
