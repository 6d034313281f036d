from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

from imagedb.models import Image
from scooter_site.common.storage import opaque_name, protected_storage
from studies.feedback import FeedbackError, parse_items
from studies.flow import Outcome
from studies.models.study import Study, new_token
from studies.presets import placeholder_problem


class Dataset(models.Model):
    """A fixed set of images that one participant rates. The datasets of a study share no image."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="datasets")
    number = models.PositiveSmallIntegerField(help_text="1, 2, ...")

    class Meta:
        ordering = ["study", "number"]
        constraints = [models.UniqueConstraint(fields=["study", "number"], name="one_dataset_per_number")]

    def __str__(self) -> str:
        return f"dataset {self.number}"


class DatasetImage(models.Model):
    """An image's place in the one dataset of a study that holds it."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="+")
    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="dataset_images")
    image = models.ForeignKey(Image, on_delete=models.PROTECT, related_name="+")
    position = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["dataset", "position"]
        constraints = [
            models.UniqueConstraint(fields=["study", "image"], name="image_in_one_dataset_of_a_study"),
            models.UniqueConstraint(fields=["dataset", "position"], name="one_image_per_dataset_position"),
        ]

    def __str__(self) -> str:
        return f"{self.dataset} position {self.position}"


class Modification(models.TextChoices):
    """How a check image was changed (studies.stimuli makes them)."""

    NONE = "none", "Unmodified"
    COLOUR = "colour", "Recoloured area"
    FILTER = "filter", "Filter"
    PIXEL = "pixel", "Pixel-level change"
    CORRUPTION = "corruption", "Strong corruption"


class StimulusPurpose(models.TextChoices):
    EXAMPLE = "example", "Example in the instructions"
    COMPREHENSION = "comprehension", "Comprehension pair"
    ATTENTION = "attention", "Attention check"


class Stimulus(models.Model):
    """An image made for instructions and checks from a clean image that no dataset of the study holds.

    Examples and comprehension pairs are two rows with one number: the unmodified and the modified side.
    """

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="stimuli")
    purpose = models.CharField(max_length=15, choices=StimulusPurpose)
    number = models.PositiveSmallIntegerField()
    modification = models.CharField(max_length=15, choices=Modification)
    pair_modification = models.CharField(
        max_length=15, choices=Modification, help_text="The modification of the pair's modified side."
    )
    source = models.ForeignKey(Image, on_delete=models.PROTECT, related_name="+")
    file = models.FileField(storage=protected_storage, upload_to=opaque_name("stimulus"), max_length=200)
    token = models.UUIDField(default=new_token, unique=True, editable=False)

    class Meta:
        ordering = ["study", "purpose", "number", "id"]
        verbose_name_plural = "stimuli"
        constraints = [
            models.UniqueConstraint(
                fields=["study", "purpose", "number", "modification"], name="one_stimulus_per_number_and_side"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_purpose_display()} {self.number}: {self.get_modification_display()}"


class PlateKind(models.TextChoices):
    PROTAN = "protan", "Protan (red cone)"
    DEUTAN = "deutan", "Deutan (green cone)"
    TRITAN = "tritan", "Tritan (blue cone)"


class ColourPlate(models.Model):
    """A pseudo-isochromatic plate of the pool that all studies draw from (studies.plates makes them)."""

    kind = models.CharField(max_length=10, choices=PlateKind, help_text="Which cone tells figure from ground.")
    digit = models.PositiveSmallIntegerField(null=True, blank=True, help_text="Empty: a plate with no digit.")
    seed = models.PositiveIntegerField()
    file = models.FileField(storage=protected_storage, upload_to=opaque_name("plate"), max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "digit", "seed"], name="plate_with_digit_once", condition=Q(digit__isnull=False)
            ),
            models.UniqueConstraint(
                fields=["kind", "seed"], name="plate_without_digit_once", condition=Q(digit__isnull=True)
            ),
            models.CheckConstraint(condition=Q(digit__isnull=True) | Q(digit__lte=9), name="plate_digit_is_0_to_9"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {'no digit' if self.digit is None else self.digit}"


class TextKind(models.TextChoices):
    CONSENT = "consent", "Consent"
    INSTRUCTIONS = "instructions", "Instructions"
    QUESTION = "question", "Question above the scale"
    FEEDBACK = "feedback", "Feedback questions"


class StudyText(models.Model):
    """A versioned text of a study. An edit makes a new version; participants keep the one they saw."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="texts")
    kind = models.CharField(max_length=15, choices=TextKind)
    version = models.PositiveSmallIntegerField(default=1)
    body = models.TextField(
        help_text="Plain text. An empty line begins a new paragraph; feedback has one question a line."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["study", "kind", "-version"]
        constraints = [
            models.UniqueConstraint(fields=["study", "kind", "version"], name="one_text_per_kind_and_version"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} version {self.version}"

    def clean(self) -> None:
        """Refuse placeholders that nothing is filled in for, and feedback questions that no page could show."""
        if problem := placeholder_problem(self.body):
            raise ValidationError({"body": problem})
        if self.kind == TextKind.FEEDBACK:
            try:
                parse_items(self.body)
            except FeedbackError as error:
                raise ValidationError({"body": str(error)}) from error


class CompletionCode(models.Model):
    """The code a participant takes back to the panel: one per outcome, so that the code tells the outcome."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="completion_codes")
    outcome = models.CharField(
        max_length=25, choices=[(outcome.value, outcome.label) for outcome in Outcome if outcome.has_code]
    )
    code = models.CharField(
        max_length=20,
        validators=[
            RegexValidator(r"\A[A-Za-z0-9_-]{1,20}\Z", "A code has 1 to 20 letters, digits, hyphens and underscores.")
        ],
    )

    class Meta:
        ordering = ["study", "id"]
        constraints = [
            models.UniqueConstraint(fields=["study", "outcome"], name="one_completion_code_per_outcome"),
            models.UniqueConstraint(fields=["study", "code"], name="completion_code_tells_the_outcome"),
        ]

    def __str__(self) -> str:
        return f"{self.get_outcome_display()}: {self.code}"
