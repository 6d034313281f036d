from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q

from imagedb.models import TargetModel
from leaderboard.statistics.equivalence import default_bound


class PublicationPolicy(models.TextChoices):
    """Who decides that the draft becomes a snapshot that everybody can cite."""

    MANUAL = "manual", "By hand: a person publishes"
    DAILY = "daily", "Daily, if results have changed"
    AT_ONCE = "at_once", "At once, whenever results have changed"


class Board(models.Model):
    """What is compared with what, and by which rules. Several boards may look at the same ratings.

    Values are in points of the board's scale, "higher = more certain that the image is modified".
    """

    name = models.CharField(max_length=100, unique=True)
    slug = models.SlugField(max_length=100, unique=True, help_text="Part of the board's address, which people cite.")
    description = models.TextField(blank=True, help_text="For visitors: what is compared here.")

    # What is compared
    scale_minimum = models.IntegerField()
    scale_maximum = models.IntegerField()
    protocol = models.CharField(
        max_length=20, blank=True, help_text="Only studies made from this preset; empty: of any protocol."
    )
    target_models = models.ManyToManyField(
        TargetModel, blank=True, related_name="boards", help_text="Only attacks on these; none chosen: on any."
    )
    is_demo = models.BooleanField(
        "demonstration", default=False, editable=False, help_text="Holds demonstration data or real data, never both."
    )

    # By which rules
    equivalence_bound = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1e-9)],
        help_text="In points of the scale, to each side; empty: 5 % of its width. Set it before ratings are seen.",
    )
    alpha = models.FloatField(
        default=0.05,
        validators=[MinValueValidator(0.0001), MaxValueValidator(0.4999)],
        help_text="Level of each of the two one-sided tests.",
    )
    minimum_participants = models.PositiveIntegerField(
        default=10, help_text="An entry of fewer valid participants is marked “few raters”."
    )
    ranks_few_raters = models.BooleanField(
        "rank entries of few raters", default=True, help_text="Off: they are shown, and have no rank."
    )
    verified_images_only = models.BooleanField(
        default=False,
        help_text="Leave out ratings of modified images that are not known to mislead their target model.",
    )

    # How it is shown
    publication_policy = models.CharField(max_length=10, choices=PublicationPolicy, default=PublicationPolicy.MANUAL)
    is_public = models.BooleanField("public", default=True, help_text="Off: nobody sees it outside the admin.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["is_demo", "name"]
        permissions = [("publish_board", "Can publish and retract snapshots")]
        constraints = [
            models.CheckConstraint(condition=Q(scale_minimum__lt=F("scale_maximum")), name="board_scale_is_not_empty"),
            models.CheckConstraint(
                condition=Q(equivalence_bound__isnull=True) | Q(equivalence_bound__gt=0),
                name="board_bound_is_positive",
            ),
            models.CheckConstraint(condition=Q(alpha__gt=0, alpha__lt=0.5), name="board_alpha_between_0_and_a_half"),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        if (
            self.scale_minimum is not None
            and self.scale_maximum is not None
            and self.scale_minimum >= self.scale_maximum
        ):
            raise ValidationError({"scale_maximum": "Must be above the scale's minimum."})

    @property
    def bound(self) -> float:
        """The equivalence bound in points."""
        if self.equivalence_bound is not None:
            return self.equivalence_bound
        return default_bound(self.scale_minimum, self.scale_maximum)

    @property
    def selection(self) -> dict[str, object]:
        """Which of the ratings on its scale are taken; the target models apart, which take whole pairs or none."""
        return {"protocol": self.protocol, "verified_images_only": self.verified_images_only}

    @property
    def rules(self) -> dict[str, object]:
        """Everything that a result depends on besides the ratings; a published snapshot keeps it."""
        return {
            "scale_minimum": self.scale_minimum,
            "scale_maximum": self.scale_maximum,
            **self.selection,
            "target_models": sorted(self.target_models.values_list("slug", flat=True)) if self.pk else [],
            "equivalence_bound": self.bound,
            "alpha": self.alpha,
            "minimum_participants": self.minimum_participants,
            "ranks_few_raters": self.ranks_few_raters,
        }
