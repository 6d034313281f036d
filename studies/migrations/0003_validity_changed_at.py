from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0002_replaced_outcome"),
    ]

    operations = [
        migrations.AddField(
            model_name="participation",
            name="validity_changed_at",
            field=models.DateTimeField(
                blank=True,
                help_text="When its ratings began to count or ceased to; empty if they never did.",
                null=True,
            ),
        ),
    ]
