from django.db import models


class ImageClass(models.Model):
    """One of the 1,000 classes of ImageNet-1k (ILSVRC 2012), in the usual order of synsets."""

    index = models.PositiveSmallIntegerField("class index", unique=True, help_text="0-999, in synset order.")
    synset = models.CharField("WordNet synset", max_length=9, unique=True, help_text="For example n02123045.")
    name = models.CharField(max_length=100)
    synonyms = models.CharField(max_length=250, blank=True)

    class Meta:
        ordering = ["index"]
        verbose_name = "ImageNet class"
        verbose_name_plural = "ImageNet classes"
        constraints = [
            models.CheckConstraint(condition=models.Q(index__lte=999), name="image_class_index_at_most_999"),
        ]

    def __str__(self) -> str:
        return f"{self.index} {self.name}"
