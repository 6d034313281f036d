"""Examples of what an attack did to images, and how far it went: some rows, whatever the size of the catalogue.

``visible`` are the images that the reader may see, as ``visible_images`` gives them: asked once for a whole page.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from django.db.models import OuterRef, QuerySet, Subquery

from imagedb.measures import MEASURES, Measure, suitable_factor
from imagedb.models import Attack, Comparison, Image, ImageKind, TargetModel
from imagedb.selectors.figures import Extent, extent, kept

# The protocol of the paper has 3,000 modified images of a pair: those are all measured.
MEASURED_AT_MOST = 5_000
COMPARABLE = {Comparison.SAME_SIZE, Comparison.RESAMPLED}

Images = QuerySet[Image]


@dataclass(frozen=True)
class Example:
    """A modified image and its source; the source is None where the reader may not see it."""

    modified: Image
    source: Image | None

    @property
    def has_difference(self) -> bool:
        """Whether a picture of the difference can be shown."""
        return self.source is not None and self.modified.comparison in COMPARABLE

    @property
    def factor(self) -> int:
        """How often to amplify the difference, for it to be seen."""
        return suitable_factor(self.modified.l2, self.modified.width, self.modified.height)


@dataclass(frozen=True)
class Pair:
    """An attack and a target model (None: made against none in particular) with images that the reader may see."""

    attack: Attack
    target_model: TargetModel | None
    first_id: int
    last_id: int

    def images(self, visible: Images) -> Images:
        """Those of the visible images that are of the pair, by id."""
        return _modified(visible).filter(attack=self.attack, target_model=self.target_model).order_by("pk")


@dataclass(frozen=True)
class Range:
    """Where the values of one distance lie."""

    measure: Measure
    median: float
    minimum: float
    maximum: float

    @property
    def median_text(self) -> str:
        return self.measure.text(self.median)

    @property
    def range_text(self) -> str:
        least, most = self.measure.text(self.minimum), self.measure.text(self.maximum)
        return least if least == most else f"{least.removesuffix(' %')} – {most}"


@dataclass(frozen=True)
class PairFigures:
    """What is known of a pair's images. ``ranges`` is empty if none was measured."""

    pair: Pair
    extent: Extent
    measured: int
    ranges: list[Range]

    @property
    def is_sample(self) -> bool:
        """Whether there are more images than were looked at."""
        return self.extent.is_at_least or self.extent.count > MEASURED_AT_MOST


def pairs_of_attack(visible: Images, attack: Attack) -> list[Pair]:
    """The target models of which there are visible modified images of an attack. Two queries."""
    of_model = _modified(visible).filter(attack=attack, target_model=OuterRef("pk"))
    models = TargetModel.objects.annotate(first_id=_first(of_model), last_id=_last(of_model)).exclude(first_id=None)
    of_none = _modified(visible).filter(attack=OuterRef("pk"), target_model=None)
    without_model = Attack.objects.filter(pk=attack.pk).annotate(first_id=_first(of_none), last_id=_last(of_none))
    return [
        *[Pair(attack, model, model.first_id, model.last_id) for model in models],
        *[Pair(attack, None, row.first_id, row.last_id) for row in without_model.exclude(first_id=None)],
    ]


def pairs_of_target_model(visible: Images, target_model: TargetModel) -> list[Pair]:
    """The attacks of which there are visible images made against a target model. One query."""
    of_attack = _modified(visible).filter(attack=OuterRef("pk"), target_model=target_model)
    attacks = Attack.objects.annotate(first_id=_first(of_attack), last_id=_last(of_attack)).exclude(first_id=None)
    return [Pair(attack, target_model, attack.first_id, attack.last_id) for attack in attacks]


def figures_of(visible: Images, pairs: Iterable[Pair]) -> list[PairFigures]:
    """Number, size and distances of each pair's images; a query for each of the two, kept for a while."""
    return [_figures(pair, pair.images(visible)) for pair in pairs]


def examples_of(visible: Images, pairs: list[Pair], most: int) -> list[Example]:
    """Up to ``most`` examples, taken in turn from each pair and spread over its images. Two queries.

    Images of a manifest mostly come class by class: the first few would all be of one class.
    """
    steps = [0] if not pairs else range(-(-most // len(pairs)))
    starts = [
        (pair, pair.first_id + (pair.last_id - pair.first_id) * step // max(len(steps) - 1, 1))
        for step in steps
        for pair in pairs
    ][:most]
    chosen = [Subquery(pair.images(visible).filter(pk__gte=start).values("pk")[:1]) for pair, start in starts]
    images = visible.filter(pk__in=chosen).select_related("image_class", "attack", "target_model")  # type: ignore[misc]  # subqueries are values, too
    examples = with_sources(visible, images.order_by("pk"))
    # The best come first: those of which all three pictures can be shown.
    return sorted(examples, key=lambda example: (not example.has_difference, example.source is None))


def with_sources(visible: Images, images: Iterable[Image]) -> list[Example]:
    """Modified images with their sources, in one query more, as far as they are visible."""
    images = list(images)
    sources = visible.in_bulk({image.source_id for image in images if image.source_id})
    return [Example(image, sources.get(image.source_id)) for image in images]


def first_examples(visible: Images, rows: QuerySet[Attack] | QuerySet[TargetModel]) -> dict[int, Example]:
    """One example for each attack or target model of a list, by its id. Three queries."""
    field = "attack" if rows.model is Attack else "target_model"
    of_row = _modified(visible).filter(**{field: OuterRef("pk")})
    chosen = dict(rows.annotate(example=_first(of_row)).values_list("pk", "example"))
    images = visible.filter(pk__in=[pk for pk in chosen.values() if pk]).select_related("image_class")
    examples = {example.modified.pk: example for example in with_sources(visible, images)}
    return {pk: examples[image_pk] for pk, image_pk in chosen.items() if image_pk in examples}


def _modified(visible: Images) -> Images:
    return visible.filter(kind=ImageKind.MODIFIED)


def _first(images: Images) -> Subquery:
    """Like ``_last`` one look into an index that ends with the id, whatever the number of images."""
    return Subquery(images.order_by("pk").values("pk")[:1])


def _last(images: Images) -> Subquery:
    return Subquery(images.order_by("-pk").values("pk")[:1])


def _figures(pair: Pair, images: Images) -> PairFigures:
    ranges = kept("distances", images, lambda: _ranges(images))
    return PairFigures(pair, extent(images), *ranges)


def _ranges(images: Images) -> tuple[int, list[Range]]:
    names = [measure.name for measure in MEASURES]
    rows = [row for row in images.values_list(*names)[:MEASURED_AT_MOST] if None not in row]
    if not rows:
        return 0, []
    columns = zip(*rows, strict=True)
    return len(rows), [
        Range(measure, median(values), min(values), max(values))
        for measure, values in zip(MEASURES, columns, strict=True)
    ]
