"""The 1,000 ImageNet classes. Index and synset are those of ILSVRC 2012; names are WordNet's lemmas."""

import csv
from pathlib import Path

from django.db import migrations

CLASSES = Path(__file__).resolve().parent.parent / "data" / "imagenet_classes.csv"


def load(apps, schema_editor):
    with CLASSES.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    apps.get_model("imagedb", "ImageClass").objects.bulk_create(
        apps.get_model("imagedb", "ImageClass")(
            index=int(row["class_index"]), synset=row["synset"], name=row["name"], synonyms=row["synonyms"]
        )
        for row in rows
    )


class Migration(migrations.Migration):
    dependencies = [("imagedb", "0001_initial")]
    operations = [migrations.RunPython(load, migrations.RunPython.noop)]
