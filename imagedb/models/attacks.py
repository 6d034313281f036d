from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q


class AttackFamily(models.TextChoices):
    COLOUR = "colour", "Colour"
    TEXTURE = "texture", "Texture"
    GEOMETRIC = "geometric", "Geometric"
    GENERATIVE = "generative", "Diffusion or other generative model"
    OTHER = "other", "Other"


class ThreatModel(models.TextChoices):
    """What the attacker knows of the target model."""

    WHITE_BOX = "white_box", "White box: architecture and weights are known"
    BLACK_BOX = "black_box", "Black box: only answers are seen, or not even these (transfer)"


class Attack(models.Model):
    """A method that makes modified images (adversarial examples)."""

    name = models.CharField(max_length=100, unique=True)
    slug = models.SlugField(max_length=100, unique=True, help_text="The name in manifests and addresses.")
    family = models.CharField(max_length=20, choices=AttackFamily, default=AttackFamily.OTHER)
    description = models.TextField(blank=True)
    threat_model = models.CharField(max_length=20, choices=ThreatModel, blank=True)
    is_targeted = models.BooleanField(
        "targeted",
        null=True,
        blank=True,
        help_text="Whether it aims at one particular wrong class.",
    )
    parameters = models.JSONField(
        default=dict, blank=True, help_text='As JSON, for example {"epsilon": 8, "steps": 100}.'
    )
    paper_title = models.CharField(max_length=300, blank=True)
    paper_url = models.URLField("paper link", blank=True)
    code_url = models.URLField("code link", blank=True)
    bibtex = models.TextField("BibTeX", blank=True)
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
    weights_reference = models.CharField(
        max_length=300, blank=True, help_text="Where the weights are: a link, a checkpoint's name, or its SHA-256."
    )
    preprocessing = models.TextField(
        "input preprocessing", blank=True, help_text="For example resize to 256, centre crop 224, ImageNet mean and sd."
    )
    dataset = models.CharField(max_length=100, default="ImageNet-1k", help_text="What it was trained on.")
    clean_accuracy = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
        help_text="Top-1 accuracy on clean images of that data set, 0 to 1.",
    )
    description = models.TextField(blank=True)
    is_demo = models.BooleanField("demonstration material", default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                name="clean_accuracy_between_0_and_1",
                condition=Q(clean_accuracy__isnull=True) | Q(clean_accuracy__gte=0, clean_accuracy__lte=1),
            ),
        ]

    def __str__(self) -> str:
        return self.name
