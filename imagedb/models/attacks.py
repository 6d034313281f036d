from django.db import models


class AttackFamily(models.TextChoices):
    COLOUR = "colour", "Colour"
    TEXTURE = "texture", "Texture"
    GEOMETRIC = "geometric", "Geometric"
    GENERATIVE = "generative", "Diffusion or other generative model"
    OTHER = "other", "Other"


class Attack(models.Model):
    """A method that makes modified images (adversarial examples)."""

    name = models.CharField(max_length=100, unique=True)
    slug = models.SlugField(max_length=100, unique=True, help_text="The name in manifests and addresses.")
    family = models.CharField(max_length=20, choices=AttackFamily, default=AttackFamily.OTHER)
    description = models.TextField(blank=True)
    paper_title = models.CharField(max_length=300, blank=True)
    paper_url = models.URLField("paper link", blank=True)
    code_url = models.URLField("code link", blank=True)
    venue = models.CharField(max_length=100, blank=True)
    year = models.PositiveSmallIntegerField(null=True, blank=True)
    is_demo = models.BooleanField(
        "demonstration material", default=False, help_text="A stand-in, not a published attack; removed with the demo."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class TargetModel(models.Model):
    """A classifier under attack, also called the victim."""

    name = models.CharField(max_length=100, unique=True)
    slug = models.SlugField(max_length=100, unique=True, help_text="The name in manifests and addresses.")
    architecture = models.CharField(max_length=100, blank=True, help_text="For example ResNet-50.")
    training = models.CharField(max_length=200, blank=True, help_text="For example adversarial, L2, epsilon 3.")
    source = models.CharField(max_length=200, blank=True, help_text="For example a RobustBench id or a link.")
    description = models.TextField(blank=True)
    is_demo = models.BooleanField("demonstration material", default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
