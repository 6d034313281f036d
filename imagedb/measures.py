"""What the distances of a modified image from its source are called, and what they mean, in plain words. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """One distance: a column of ``Image`` of the same name."""

    name: str
    label: str
    unit: str
    meaning: str
    decimals: int
    is_share: bool = False

    def text(self, value: float | None) -> str:
        """The value with its usual precision; a dash where nothing was measured."""
        if value is None:
            return "–"
        if self.is_share:
            return _share(value)
        return f"{value:.{self.decimals}f}"


def _share(value: float) -> str:
    percent = 100 * value
    if 0 < percent < 0.1:
        return "< 0.1 %"
    if 99.9 < percent < 100:
        return "> 99.9 %"
    return f"{percent:.1f} %" if percent % 100 else f"{percent:.0f} %"


MEASURES = [
    Measure(
        "linf",
        "L∞",
        "of 255 levels",
        "The largest change of any colour channel of any pixel. 0 is no change, 255 is black turned into white. It "
        "says how far the most changed spot went, and nothing about how many there are.",
        0,
    ),
    Measure(
        "l2",
        "L2",
        "values 0 to 1",
        "The Euclidean length of the whole change, over all pixels and channels with values from 0 to 1. It grows with "
        "the number of pixels: compare it only between images of one size.",
        2,
    ),
    Measure(
        "changed_share",
        "Changed pixels",
        "share of all",
        "The share of pixels that differ in any channel, by however little. Many attacks touch every pixel slightly.",
        1,
        is_share=True,
    ),
    Measure(
        "ssim",
        "SSIM",
        "1 is identical",
        "Structural similarity of the brightness, averaged over the image: 1 for identical images, near 0 for "
        "unrelated ones. It hardly notices a change of colour that leaves the brightness alone.",
        3,
    ),
    Measure(
        "ciede2000",
        "CIEDE2000",
        "colour difference",
        "How different the colours look, averaged over the pixels. About 1 is just noticeable between patches side by "
        "side; above 5 most people see it at once.",
        2,
    ),
]


# How often a change can be amplified to be looked at, and how large the typical change shall then be, of 255 levels.
FACTORS = (1, 2, 5, 10, 20, 50)
VISIBLE_CHANGE = 60


def suitable_factor(l2: float | None, width: int, height: int) -> int:
    """The largest of FACTORS by which the typical change does not leave the range that a picture can show.

    ``l2`` over all channels of ``width`` x ``height`` pixels, with values from 0 to 1; 10 if it is not known.
    """
    if l2 is None:
        return 10
    typical = 255 * l2 / (3 * width * height) ** 0.5
    return max((factor for factor in FACTORS if factor * typical <= VISIBLE_CHANGE), default=1)
