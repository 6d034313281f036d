from django.core.exceptions import ValidationError
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


class AttackEvaluation(models.Model):
    """How often an attack fooled a target model when it was tried, as stated by who tried it.

    The catalogue cannot tell: it takes no image that its target model still recognises, so failures are not in it.
    """

    # Neither changes once stored (imagedb/admin/evaluations.py): a statement on another pair is another statement.
    attack = models.ForeignKey(Attack, on_delete=models.PROTECT, related_name="evaluations")
    target_model = models.ForeignKey(TargetModel, on_delete=models.PROTECT, related_name="evaluations")
    images_attacked = models.PositiveIntegerField(
        "source images attacked",
        validators=[MinValueValidator(1)],
        help_text="All of them, with those where the attack failed.",
    )
    images_fooling = models.PositiveIntegerField(
        "of these, fooled the target model",
        help_text="Source images whose modified image the target model took for another class.",
    )
    citation = models.TextField(blank=True, help_text="Where the numbers are from, for example a paper and its table.")
    source_url = models.URLField("where it is published", blank=True)

    class Meta:
        ordering = ["attack__name", "target_model__name"]
        constraints = [
            models.UniqueConstraint(
                fields=["attack", "target_model"],
                name="one_evaluation_per_attack_and_target_model",
                violation_error_message="There is an evaluation of this attack on this target model. Change that one.",
            ),
            models.CheckConstraint(name="evaluation_attacked_images", condition=Q(images_attacked__gt=0)),
            models.CheckConstraint(
                name="no_more_images_fool_than_were_attacked",
                condition=Q(images_fooling__gte=0, images_fooling__lte=models.F("images_attacked")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.attack} on {self.target_model}: {self.images_fooling:,} of {self.images_attacked:,}"

    def clean(self) -> None:
        """Name the field where the numbers do not fit each other."""
        if self.images_attacked and self.images_fooling is not None and self.images_fooling > self.images_attacked:
            raise ValidationError(
                {
                    "images_fooling": f"{self.images_fooling:,} cannot have fooled the model, since only "
                    f"{self.images_attacked:,} were attacked."
                }
            )
