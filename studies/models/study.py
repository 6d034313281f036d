import uuid
from decimal import Decimal

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import F, Q

from imagedb.models import Attack, TargetModel
from studies.flow import Rules
from studies.models.quality import QualitySettings
from studies.pay import Rates
from studies.protocols import Protocol, Setup, protocol
from studies.scale import Scale
from studies.way_back import parameter_problem, return_url_problem

PARAMETER_NAME = RegexValidator(
    r"\A[A-Za-z][A-Za-z0-9_.-]*\Z", "Letters, digits, “_”, “.” and “-”, beginning with a letter."
)
EXAMPLE_COUNT = 3  # in the instructions: one pair for each type of modification


class StudyStatus(models.TextChoices):
    DRAFT = "draft", "Draft"
    READY = "ready", "Ready"
    RUNNING = "running", "Running"
    PAUSED = "paused", "Paused"
    CLOSED = "closed", "Closed"
    ARCHIVED = "archived", "Archived"


class ScaleWidget(models.TextChoices):
    SLIDER = "slider", "Slider"
    LIKERT = "likert", "Buttons, one per point"


class ScaleDirection(models.TextChoices):
    """What a high value means. Analysis always works on "higher = more certain that the image is modified"."""

    HIGHER_IS_MODIFIED = "higher_is_modified", "Higher = modified"
    HIGHER_IS_CLEAN = "higher_is_clean", "Higher = unmodified"


class AttentionPolicy(models.TextChoices):
    EXCLUDE_AFTERWARDS = "exclude_afterwards", "Let them finish, exclude afterwards"
    END_AT_ONCE = "end_at_once", "End the study at once"


class Panel(models.TextChoices):
    DIRECT = "direct", "Direct link"
    PROLIFIC = "prolific", "Prolific"


class Study(QualitySettings, models.Model):
    """A study of one (attack, target model) pair: every number of its protocol, frozen at launch.

    The defaults are those of the framework paper (docs/protocol.md); ``studies.presets`` names whole sets.
    """

    # What
    title = models.CharField(max_length=200, help_text="For researchers; participants never see it.")
    slug = models.SlugField(
        max_length=100, unique=True, help_text="Part of the link participants get: it should not give anything away."
    )
    public_title = models.CharField(max_length=200, default="Rate images", help_text="What participants see.")
    attack = models.ForeignKey(Attack, on_delete=models.PROTECT, related_name="studies")
    target_model = models.ForeignKey(TargetModel, on_delete=models.PROTECT, related_name="studies")
    preset = models.CharField(max_length=20, default="paper", editable=False)
    status = models.CharField(max_length=10, choices=StudyStatus, default=StudyStatus.DRAFT, editable=False)
    is_demo = models.BooleanField("demonstration", default=False, editable=False)
    contact_email = models.EmailField("contact for participants", blank=True)

    # Scale
    scale_widget = models.CharField(max_length=10, choices=ScaleWidget, default=ScaleWidget.SLIDER)
    scale_minimum = models.SmallIntegerField(default=-100)
    scale_maximum = models.SmallIntegerField(default=100)
    scale_direction = models.CharField(max_length=20, choices=ScaleDirection, default=ScaleDirection.HIGHER_IS_MODIFIED)
    label_minimum = models.CharField(max_length=120, default="I am 100% certain that this image is unmodified")
    label_maximum = models.CharField(max_length=120, default="I am 100% certain that this image is modified")

    # Plan
    dataset_count = models.PositiveSmallIntegerField("datasets", default=60, validators=[MinValueValidator(1)])
    clean_per_dataset = models.PositiveSmallIntegerField(
        "clean images per dataset", default=50, validators=[MinValueValidator(1)]
    )
    modified_per_dataset = models.PositiveSmallIntegerField(
        "modified images per dataset", default=50, validators=[MinValueValidator(1)]
    )
    participants_per_dataset = models.PositiveSmallIntegerField(
        "valid participants per dataset", default=10, validators=[MinValueValidator(1)]
    )
    buffer_percent = models.PositiveSmallIntegerField(
        "buffer in per cent",
        default=15,
        validators=[MaxValueValidator(100)],
        help_text="Places on top of the plan, for people who will be excluded.",
    )
    seed = models.PositiveIntegerField(
        default=0, help_text="Datasets and check images are drawn with it: the same seed draws the same."
    )

    # Checks
    plate_count = models.PositiveSmallIntegerField("colour plates", default=5, validators=[MaxValueValidator(10)])
    plates_required = models.PositiveSmallIntegerField("plates that must be right", default=5)
    comprehension_pair_count = models.PositiveSmallIntegerField(
        "comprehension pairs", default=6, validators=[MaxValueValidator(12)]
    )
    comprehension_required = models.PositiveSmallIntegerField("pairs that must be right", default=5)
    comprehension_tries = models.PositiveSmallIntegerField(
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(5)],
        help_text="The paper gives one; Prolific's own policy asks for at least two.",
    )
    corrupted_check_count = models.PositiveSmallIntegerField("corrupted check images", default=3)
    instructed_check_count = models.PositiveSmallIntegerField("instructed responses", default=3)
    instructed_tolerance = models.PositiveSmallIntegerField(
        default=10, help_text="How far from the instructed value still passes, in points of the scale."
    )
    attention_failures_allowed = models.PositiveSmallIntegerField(
        default=1, help_text="More failed checks than this, and the participant fails the attention rule."
    )
    attention_policy = models.CharField(
        max_length=20, choices=AttentionPolicy, default=AttentionPolicy.EXCLUDE_AFTERWARDS
    )

    # Main study
    may_go_back = models.BooleanField(
        "may go back",
        default=False,
        help_text="Participants may return to earlier items and change their answers; those before are kept.",
    )
    minimum_viewing_ms = models.PositiveIntegerField(
        "minimum viewing time",
        default=0,
        validators=[MaxValueValidator(60_000)],
        help_text="In milliseconds. An image must have been in sight for so long before the scale opens.",
    )
    break_every = models.PositiveSmallIntegerField(
        "break every", default=0, help_text="Number of items after which a break is offered; 0: none."
    )

    # Device and time
    phones_allowed = models.BooleanField(default=False)
    minimum_viewport_width = models.PositiveSmallIntegerField("minimum window width", default=800)
    minimum_viewport_height = models.PositiveSmallIntegerField("minimum window height", default=500)
    lease_minutes = models.PositiveSmallIntegerField(
        default=60,
        validators=[MinValueValidator(5)],
        help_text="A participant who has not been seen for this long no longer holds a place.",
    )

    # Recruitment and pay
    panel = models.CharField(max_length=10, choices=Panel, default=Panel.DIRECT)
    prolific_study_id = models.CharField(
        "Prolific study id",
        max_length=24,
        blank=True,
        help_text="24 characters. When set, links with another STUDY_ID are refused.",
    )
    participant_parameter = models.CharField(
        "parameter with the participant",
        max_length=40,
        default="id",
        validators=[PARAMETER_NAME],
        help_text="Of links from another panel: the name under which it gives a participant's id.",
    )
    session_parameter = models.CharField(
        "parameter with the session",
        max_length=40,
        blank=True,
        validators=[PARAMETER_NAME],
        help_text="Where the panel also gives an id of the visit; links without both are then refused.",
    )
    return_url = models.CharField(
        "return address",
        max_length=500,
        blank=True,
        help_text="Of another panel, such as https://panel.example.org/done?code={code}; {participant} and {session} "
        "are filled in too. Empty: participants see their code, and copy it.",
    )
    currency = models.CharField(max_length=3, default="GBP")
    hourly_rate = models.DecimalField(
        max_digits=6, decimal_places=2, default=Decimal("7.60"), validators=[MinValueValidator(Decimal(0))]
    )
    minutes_complete = models.DecimalField(max_digits=5, decimal_places=2, default=Decimal(13))
    minutes_colour_check = models.DecimalField(
        "minutes paid after a failed colour check", max_digits=5, decimal_places=2, default=Decimal(1)
    )
    minutes_comprehension = models.DecimalField(
        "minutes paid after a failed comprehension check", max_digits=5, decimal_places=2, default=Decimal("2.5")
    )

    # Life
    extra_places = models.PositiveIntegerField(
        default=0, editable=False, help_text="On top of plan and buffer, added after the launch."
    )
    copied_from = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    materials_requested_at = models.DateTimeField(null=True, editable=False)
    materials_error = models.TextField(blank=True, editable=False)
    materials_built_at = models.DateTimeField(null=True, editable=False)
    launched_at = models.DateTimeField(null=True, editable=False)
    closed_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "studies"
        constraints = [
            models.CheckConstraint(name="study_scale_is_not_empty", condition=Q(scale_minimum__lt=F("scale_maximum"))),
            models.CheckConstraint(
                name="study_plates_required_at_most_shown", condition=Q(plates_required__lte=F("plate_count"))
            ),
            models.CheckConstraint(
                name="study_pairs_required_at_most_shown",
                condition=Q(comprehension_required__lte=F("comprehension_pair_count")),
            ),
        ]

    def __str__(self) -> str:
        return self.title

    def clean(self) -> None:
        """Refuse what no participant could get through."""
        self._clean_panel()
        self._clean_attention_checks()

    def _clean_panel(self) -> None:
        problems = {
            "session_parameter": parameter_problem(self.participant_parameter, self.session_parameter),
            "return_url": return_url_problem(self.return_url),
        }
        if found := {field: problem for field, problem in problems.items() if problem}:
            raise ValidationError(found)

    def _clean_attention_checks(self) -> None:
        """More of them than have room would leave no order to show them in."""
        most = self.most_attention_checks
        if self.attention_check_count > most:
            images = self.clean_per_dataset + self.modified_per_dataset
            field = "instructed_check_count" if self.instructed_check_count else "corrupted_check_count"
            raise ValidationError(
                {
                    field: f"{self.attention_check_count} attention checks (corrupted and instructed ones together) do "
                    f"not fit between {images} images without being first, last or adjacent: set at most {most}."
                }
            )

    @property
    def attention_check_count(self) -> int:
        return self.corrupted_check_count + self.instructed_check_count

    @property
    def most_attention_checks(self) -> int:
        """How many checks there is room for: one between any two images."""
        return max(0, self.clean_per_dataset + self.modified_per_dataset - 1)

    @property
    def check_source_count(self) -> int:
        """Clean images outside the datasets, one for each example, comprehension pair and corrupted check."""
        return EXAMPLE_COUNT + self.comprehension_pair_count + self.corrupted_check_count

    @property
    def trial_count(self) -> int:
        """Images and attention checks that one participant rates: 106 in the paper."""
        return self.protocol.trial_count(self.setup)

    @property
    def minutes_of_ratings(self) -> Decimal:
        """Minutes of a complete run that are left when the ratings begin: without those of the checks before them."""
        if self.comprehension_pair_count:
            before = self.minutes_comprehension
        else:
            before = self.minutes_colour_check if self.plate_count else Decimal(0)
        return self.minutes_complete - before if before < self.minutes_complete else self.minutes_complete

    @property
    def planned_participations(self) -> int:
        """Valid participations the plan asks for: 600 in the paper."""
        return self.dataset_count * self.participants_per_dataset

    @property
    def place_count(self) -> int:
        """Planned participations and the buffer on top, rounded up: 690 in the paper; and what was added later."""
        return -(-self.planned_participations * (100 + self.buffer_percent) // 100) + self.extra_places

    @property
    def places_per_dataset(self) -> int:
        """The most that one dataset gets when all places are shared out evenly: 12 in the paper."""
        return -(-self.place_count // self.dataset_count)

    @property
    def rating_scale(self) -> Scale:
        return Scale(
            minimum=self.scale_minimum,
            maximum=self.scale_maximum,
            higher_is_modified=self.scale_direction == ScaleDirection.HIGHER_IS_MODIFIED,
        )

    @property
    def protocol(self) -> Protocol:
        """How items are chosen, ordered, worded and checked."""
        return protocol(self.preset)

    @property
    def setup(self) -> Setup:
        return Setup(
            scale=self.rating_scale,
            widget=self.scale_widget,
            image_count=self.clean_per_dataset + self.modified_per_dataset,
            corrupted_check_count=self.corrupted_check_count,
            instructed_check_count=self.instructed_check_count,
            instructed_tolerance=self.instructed_tolerance,
        )

    @property
    def rules(self) -> Rules:
        return Rules(
            plate_count=self.plate_count,
            plates_required=self.plates_required,
            pair_count=self.comprehension_pair_count,
            pairs_required=self.comprehension_required,
            comprehension_tries=self.comprehension_tries,
            attention_failures_allowed=self.attention_failures_allowed,
            end_at_once=self.attention_policy == AttentionPolicy.END_AT_ONCE,
        )

    @property
    def rates(self) -> Rates:
        return Rates(
            currency=self.currency,
            hourly_rate=self.hourly_rate,
            minutes_complete=self.minutes_complete,
            minutes_colour_check=self.minutes_colour_check,
            minutes_comprehension=self.minutes_comprehension,
        )


def new_token() -> uuid.UUID:
    """An address that nobody can guess and that says nothing."""
    return uuid.uuid4()
