"""Which of the images that are there have an answer of a target model; from now on the database keeps track itself."""

from django.db import migrations

VERIFY = """
UPDATE imagedb_image SET verified = TRUE WHERE EXISTS (
    SELECT 1 FROM imagedb_prediction p WHERE p.image_id = imagedb_image.id
    AND (imagedb_image.kind = 'clean' OR p.target_model_id = imagedb_image.target_model_id))
"""


class Migration(migrations.Migration):
    dependencies = [("imagedb", "0007_know_which_images_are_verified")]
    operations = [migrations.RunSQL(VERIFY, migrations.RunSQL.noop)]
