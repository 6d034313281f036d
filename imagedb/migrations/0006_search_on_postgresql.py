"""The words of images themselves, in an index of PostgreSQL. No model knows the column: it follows from two others.

Everything but letters and digits becomes a space before, so that words are the same as those of a question
(imagedb/selectors/search.py). A later change of the type of one of the two drops this column first and adds it again.
"""

from django.db import migrations

TEXT = "original_filename || ' ' || attribution"
ADD = rf"""
ALTER TABLE imagedb_image ADD COLUMN own_words tsvector GENERATED ALWAYS AS (
    strip(to_tsvector('simple'::regconfig,
        translate({TEXT}, '!"#$%&''()*+,-./:;<=>?@[\]^_`{{|}}~', repeat(' ', 32))))
) STORED
"""
INDEX = "CREATE INDEX image_by_own_words ON imagedb_image USING gin (own_words)"


def add(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(ADD, params=None)
        schema_editor.execute(INDEX, params=None)


def drop(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("ALTER TABLE imagedb_image DROP COLUMN own_words", params=None)


class Migration(migrations.Migration):
    dependencies = [("imagedb", "0005_find_a_page_of_a_long_list")]
    operations = [migrations.RunPython(add, drop)]
