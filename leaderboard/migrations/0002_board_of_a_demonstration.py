from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("leaderboard", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="board",
            name="is_demo",
            field=models.BooleanField(
                default=False,
                editable=False,
                help_text="Holds demonstration data or real data, never both.",
                verbose_name="demonstration",
            ),
        ),
        migrations.AddField(
            model_name="board",
            name="publication_policy",
            field=models.CharField(
                choices=[
                    ("manual", "By hand: a person publishes"),
                    ("daily", "Daily, if results have changed"),
                    ("at_once", "At once, whenever results have changed"),
                ],
                default="manual",
                max_length=10,
            ),
        ),
    ]
