from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("leaderboard", "0006_count_attempts"),
    ]

    operations = [
        migrations.AlterField(
            model_name="entry",
            name="fools_unnoticed",
            field=models.FloatField(
                blank=True,
                help_text="Of the rated modified images that the target model is known to misclassify, the share that people rate at most the equivalence bound above clean images, 0 to 1.",
                null=True,
                verbose_name="fools the model and nobody notices",
            ),
        ),
    ]
