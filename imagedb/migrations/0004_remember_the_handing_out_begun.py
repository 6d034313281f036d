from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('imagedb', '0003_hand_out_imports'),
    ]

    operations = [
        migrations.AddField(
            model_name='importbatch',
            name='handout_begun',
            field=models.PositiveIntegerField(default=0, editable=False, help_text='The latest handing out that a worker has begun with; what was handed out before is stale.'),
        ),
        migrations.AlterField(
            model_name='importbatch',
            name='handout',
            field=models.PositiveIntegerField(default=0, editable=False, help_text='How often the work has been handed out to workers.'),
        ),
    ]
