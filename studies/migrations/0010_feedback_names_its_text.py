import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    # Apart from the one before: PostgreSQL alters no table whose rows were changed in the same transaction.
    dependencies = [
        ('studies', '0009_feedback_questions'),
    ]

    operations = [
        migrations.AlterField(
            model_name='feedbackanswer',
            name='text',
            field=models.ForeignKey(help_text='The version of the questions that was shown.', on_delete=django.db.models.deletion.PROTECT, related_name='+', to='studies.studytext'),
        ),
    ]
