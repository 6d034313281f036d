from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q

from imagedb.models import Attack, TargetModel
from leaderboard.models.external import ExternalResult
from leaderboard.models.snapshot import Snapshot
from scooter_site.common.storage import opaque_name, private_storage


class EntryVerdict(models.TextChoices):
    """docs/statistics.md says what each one means, and what it does not."""

    IMPERCEPTIBLE = "imperceptible", "Imperceptible"
    PERCEPTIBLE = "perceptible", "Perceptible"
    INCONCLUSIVE = "inconclusive", "Inconclusive"
    NOT_ESTIMABLE = "not_estimable", "Not estimable"


class Flag(models.TextChoices):
    """What a reader should know before trusting an entry."""

    FEW_RATERS = "few_raters", "Few raters"
    BOUNDARY_FIT = "boundary_fit", "Boundary fit"
    CHECKS_DISAGREE = "checks_disagree", "Checks disagree"
    UNVERIFIED_IMAGES = "unverified_images", "Unverified images"
    LOW_RELIABILITY = "low_reliability", "Low reliability"
    EXTERNAL = "external", "External result"


def _optional(verbose_name: str | None = None, help_text: str = "") -> "models.FloatField[float | None, float | None]":
    return models.FloatField(verbose_name, null=True, blank=True, help_text=help_text)


VERDICT_LABELS = {value: str(label) for value, label in EntryVerdict.choices}
FLAG_LABELS = {value: str(label) for value, label in Flag.choices}


class Readable:
    """What follows from the values of an entry, however it was read."""

    __slots__ = ()

    def __str__(self: Any) -> str:
        return f"{self.attack.name} on {self.target_model.name}"

    @property
    def p_value(self: Any) -> float | None:
        """Of the two one-sided tests together: both must be significant, so the larger one."""
        if self.p_lower is None or self.p_upper is None:
            return None
        return float(max(self.p_lower, self.p_upper))

    @property
    def verdict_label(self: Any) -> str:
        """The verdict as people read it."""
        return VERDICT_LABELS[self.verdict]

    @property
    def flag_labels(self: Any) -> list[str]:
        """The flags as people read them."""
        return [FLAG_LABELS[flag] for flag in self.flags]


class Entry(Readable, models.Model):
    """The result of one (attack, target model) pair in one snapshot.

    Pages and API read these rows and compute nothing. All values are in points of the board's scale, "higher = more
    modified", so a difference above zero means that people notice. What is not defined is null, never NaN.
    """

    snapshot = models.ForeignKey(Snapshot, on_delete=models.CASCADE, related_name="entries")
    attack = models.ForeignKey(Attack, on_delete=models.PROTECT, related_name="entries")
    target_model = models.ForeignKey(TargetModel, on_delete=models.PROTECT, related_name="entries")
    external_result = models.ForeignKey(
        ExternalResult, on_delete=models.PROTECT, null=True, blank=True, related_name="entries"
    )

    # Counts
    participants = models.PositiveIntegerField()
    ratings = models.PositiveIntegerField()
    ratings_modified = models.PositiveIntegerField("ratings of modified images")
    ratings_clean = models.PositiveIntegerField("ratings of clean images")
    images_modified = models.PositiveIntegerField("modified images")
    images_clean = models.PositiveIntegerField("clean images")
    images_unverified = models.PositiveIntegerField(
        "unverified images",
        default=0,
        help_text="Modified images that were rated, and whose effect on the model is unknown.",
    )

    # Descriptive
    mean_modified = _optional()
    sd_modified = _optional("SD modified")
    mean_clean = _optional()
    sd_clean = _optional("SD clean")
    mean_difference = _optional(help_text="Mean of all ratings of modified minus that of clean images.")

    # The mixed model and its verdict
    difference = _optional(help_text="Of the mixed model, modified minus clean: above zero, people notice.")
    standard_error = _optional()
    degrees_of_freedom = _optional(help_text="Satterthwaite's.")
    ci90_low = _optional("90 % interval from")
    ci90_high = _optional("90 % interval to")
    ci95_low = _optional("95 % interval from")
    ci95_high = _optional("95 % interval to")
    p_lower = _optional("p that it is above the lower bound", "One-sided.")
    p_upper = _optional("p that it is below the upper bound", "One-sided.")
    holm_p_value = _optional("Holm-adjusted p value", "Of the two tests together, over the snapshot.")
    supported_bound = _optional(help_text="The smallest bound these ratings could support.")
    verdict = models.CharField(max_length=15, choices=EntryVerdict, default=EntryVerdict.NOT_ESTIMABLE)

    # Place among the entries of the snapshot
    rank = models.PositiveIntegerField(null=True, blank=True, help_text="1 is the smallest absolute difference.")
    rank_low = models.PositiveIntegerField(
        null=True, blank=True, help_text="With 90 % probability the rank is from this one ..."
    )
    rank_high = models.PositiveIntegerField(null=True, blank=True, help_text="... to this one.")
    rank_probabilities = models.JSONField(default=list, blank=True, help_text="Of the ranks 1, 2, ...")

    # Detection and reliability
    auc = _optional("AUC")
    auc_low = _optional("95 % interval of the AUC from")
    auc_high = _optional("95 % interval of the AUC to")
    accuracy_modified = _optional(help_text="Share of ratings of modified images on the modified side; middle: half.")
    accuracy_clean = _optional(help_text="The same for clean images and the clean side.")
    d_prime = _optional("d'")
    icc_single = _optional("ICC(2,1)")
    icc_mean = _optional("ICC(2,k)")
    krippendorff_alpha = _optional("Krippendorff's alpha")
    split_half = _optional("split-half reliability")

    # The model's side
    attack_success_rate = _optional(
        help_text="Share of attempts that the target model misclassifies, 0 to 1; null where only successes are known."
    )
    images_attacked = models.PositiveIntegerField(
        "source images attacked",
        null=True,
        blank=True,
        help_text="As stated in the catalogue when the entry was computed; null where nothing is stated.",
    )
    images_fooling = models.PositiveIntegerField(
        "of these, fooled the target model", null=True, blank=True, help_text="Stated with it."
    )
    fools_unnoticed = _optional(
        "fools the model and nobody notices",
        "Of the rated modified images that the target model is known to misclassify, the share that people rate at "
        "most the equivalence bound above clean images, 0 to 1.",
    )

    flags = models.JSONField(default=list, blank=True, help_text="Codes of leaderboard.models.Flag.")
    details = models.JSONField(default=dict, blank=True, encoder=DjangoJSONEncoder)

    # Provenance
    inputs = models.FileField(
        storage=private_storage,
        upload_to=opaque_name("results"),
        max_length=200,
        help_text="The ratings that it follows from (leaderboard/inputs.py says how they are written).",
    )
    inputs_sha256 = models.CharField(max_length=64, editable=False, help_text="Of the stored file.")
    inputs_bytes = models.PositiveBigIntegerField(editable=False, default=0)
    input_digest = models.CharField(
        max_length=64, help_text="SHA-256 over the ratings that went in: equal digests, equal results."
    )
    code_version = models.CharField(max_length=64, blank=True)
    data_cutoff = models.DateTimeField(
        null=True, blank=True, help_text="The newest change of which participations count that is in it."
    )
    computed_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "entries"
        constraints = [
            models.UniqueConstraint(
                fields=["snapshot", "attack", "target_model"], name="one_entry_per_pair_and_snapshot"
            ),
            models.CheckConstraint(
                name="estimated_entry_has_its_error_and_verdict",
                condition=Q(difference__isnull=True, standard_error__isnull=True, verdict="not_estimable")
                | (Q(difference__isnull=False, standard_error__isnull=False) & ~Q(verdict="not_estimable")),
            ),
            models.CheckConstraint(
                name="only_an_estimated_entry_is_ranked",
                condition=Q(rank__isnull=True) | Q(difference__isnull=False, rank__gte=1),
            ),
        ]
