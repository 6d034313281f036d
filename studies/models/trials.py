from django.db import models
from django.db.models import Q
from django.utils import timezone

from imagedb.models import Image
from studies.models.materials import ColourPlate, Stimulus
from studies.models.participation import Participation
from studies.models.study import new_token


class PlateTrial(models.Model):
    """One colour plate shown to one participant."""

    participation = models.ForeignKey(Participation, on_delete=models.CASCADE, related_name="plate_trials")
    position = models.PositiveSmallIntegerField(help_text="1, 2, ...")
    plate = models.ForeignKey(ColourPlate, on_delete=models.PROTECT, related_name="+")
    token = models.UUIDField(default=new_token, unique=True, editable=False)
    answer = models.CharField(max_length=4, blank=True, help_text="0-9, or none for I don't see a digit.")
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["participation", "position"]
        constraints = [
            models.UniqueConstraint(fields=["participation", "position"], name="one_plate_per_position"),
        ]

    def __str__(self) -> str:
        return f"plate {self.position}"


class PairTrial(models.Model):
    """One comprehension pair shown to one participant: the modified side is to be picked."""

    class Side(models.TextChoices):
        LEFT = "left", "Left"
        RIGHT = "right", "Right"

    participation = models.ForeignKey(Participation, on_delete=models.CASCADE, related_name="pair_trials")
    attempt = models.PositiveSmallIntegerField(default=1)
    position = models.PositiveSmallIntegerField(help_text="1, 2, ...")
    clean_stimulus = models.ForeignKey(Stimulus, on_delete=models.PROTECT, related_name="+")
    modified_stimulus = models.ForeignKey(Stimulus, on_delete=models.PROTECT, related_name="+")
    modified_side = models.CharField(max_length=5, choices=Side)
    token = models.UUIDField(default=new_token, unique=True, editable=False)
    answer = models.CharField(max_length=5, choices=Side, blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["participation", "attempt", "position"]
        constraints = [
            models.UniqueConstraint(fields=["participation", "attempt", "position"], name="one_pair_per_position"),
        ]

    def __str__(self) -> str:
        return f"pair {self.position}"


class TrialKind(models.TextChoices):
    """Kinds that several protocols have; a protocol may have others besides (studies.protocols).

    Analysis takes the ratings of the kind "image": one image of the dataset, rated on the study's scale.
    """

    IMAGE = "image", "Image"
    CORRUPTED = "corrupted", "Attention check: corrupted image"
    INSTRUCTED = "instructed", "Attention check: instructed response"


class Trial(models.Model):
    """One of the items one participant rates, in the order fixed when the dataset was assigned."""

    participation = models.ForeignKey(Participation, on_delete=models.CASCADE, related_name="trials")
    position = models.PositiveSmallIntegerField(help_text="1, 2, ...")
    kind = models.CharField(max_length=20, default=TrialKind.IMAGE, help_text="One of its protocol's kinds.")
    image = models.ForeignKey(Image, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    stimulus = models.ForeignKey(Stimulus, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    instructed_value = models.SmallIntegerField(null=True, blank=True)
    parameters = models.JSONField(
        default=dict,
        blank=True,
        help_text="The protocol's own. The page heeds exposure_ms (the image is hidden after it) and second_image (id "
        "of an image beside the first).",
    )
    token = models.UUIDField(default=new_token, unique=True, editable=False)
    first_shown_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["participation", "position"]
        constraints = [
            models.UniqueConstraint(fields=["participation", "position"], name="one_trial_per_position"),
            models.UniqueConstraint(
                fields=["participation", "image"], name="image_once_per_participation", condition=Q(image__isnull=False)
            ),
            models.CheckConstraint(
                name="trial_shows_one_image_or_an_instruction",
                condition=Q(image__isnull=False, stimulus__isnull=True)
                | Q(image__isnull=True, stimulus__isnull=False)
                | Q(image__isnull=True, stimulus__isnull=True, instructed_value__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"trial {self.position}"

    @property
    def kind_label(self) -> str:
        """For researchers, as its protocol names it."""
        return self.participation.study.protocol.kinds.get(self.kind, self.kind)


class Rating(models.Model):
    """The answer to one trial, in the study's own scale and direction.

    The first answer stands, unless the study lets participants go back; then the last one does, and those before it
    are kept as RatingChange. What the browser measured and did not send, or sent as nonsense, is empty.
    """

    trial = models.OneToOneField(Trial, on_delete=models.CASCADE, related_name="rating", primary_key=True)
    value = models.SmallIntegerField()
    start_position = models.SmallIntegerField(
        null=True, blank=True, help_text="Where the scale stood before it was touched; empty: it showed no position."
    )
    answered_at = models.DateTimeField(default=timezone.now, help_text="By the server's clock.")
    client_ms = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="When it was given, by the browser's monotonic clock since the page was opened.",
    )
    response_ms = models.PositiveIntegerField(
        null=True, blank=True, help_text="From image shown to answer sent, by the browser's monotonic clock."
    )
    first_interaction_ms = models.PositiveIntegerField(
        help_text="When the scale was first touched. An untouched scale is no answer, so every rating has it."
    )
    last_interaction_ms = models.PositiveIntegerField(null=True, blank=True)
    visible_ms = models.PositiveIntegerField(
        null=True, blank=True, help_text="For how long the item was in sight: shown, and the page not hidden."
    )
    focus_losses = models.PositiveSmallIntegerField(null=True, blank=True)
    shown_width = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="Of the image as it was shown, in pixels of the device."
    )
    shown_height = models.PositiveSmallIntegerField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.value} for {self.trial}"


class RatingChange(models.Model):
    """An answer that did not stand: the participant went back and gave another."""

    rating = models.ForeignKey(Rating, on_delete=models.CASCADE, related_name="changes")
    value = models.SmallIntegerField(help_text="The answer that was replaced.")
    answered_at = models.DateTimeField(help_text="When that answer was given.")
    response_ms = models.PositiveIntegerField(null=True, blank=True)
    changed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.value}, replaced"
