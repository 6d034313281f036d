"""From the bytes of an image file to the pixels people see. Pure: Pillow and numpy, no Django.

Everything the site shows is upright, sRGB, 8 bits per channel and RGB, whatever the file was. What a file is, is
what its content decodes to; names and declared types are never believed.
"""

import functools
import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageCms, ImageOps

# 50 million pixels take 150 MB once decoded. Catalogue images have about 0.2 million.
MAX_PIXELS = 50_000_000
THUMBNAIL_SIDE = 256

# Pillow's names of the formats that may be decoded, and the ending a stored file of that format gets.
ENDINGS = {"JPEG": ".jpg", "PNG": ".png", "WEBP": ".webp", "BMP": ".bmp", "TIFF": ".tif", "GIF": ".gif"}

# A profile that moves no colour by more than this many of 255 levels is sRGB under whatever name: vendors' sRGB
# profiles differ by one level from rounding in their tables, Adobe RGB (1998) by 135.
SRGB_TOLERANCE = 2

PHOTOMETRIC_INTERPRETATION, WHITE_IS_ZERO = 262, 0  # TIFF 6.0, section 3


class UnreadableImage(ValueError):
    """The bytes are no image the catalogue can take; ``reason`` says why, for the person who sent it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class DecodedImage:
    """A decoded file: ``format`` and ``mode`` are those of the file, everything else is of the upright image."""

    format: str
    mode: str
    width: int
    height: int
    image: Image.Image  # RGB, sRGB, upright
    notes: tuple[str, ...]  # what was changed on the way, for people


def decode(content: bytes, max_pixels: int = MAX_PIXELS) -> DecodedImage:
    """Decode a whole image file: orientation applied, colours in sRGB, transparency flattened on white.

    The size is judged from the header, before any pixel is decoded. An sRGB file, or one without a profile, keeps
    every pixel value. Raises UnreadableImage.
    """
    if not content:
        raise UnreadableImage("the file is empty")
    with _unreadable_unless_sound(), _without_warnings(), _open(content) as file:
        _refuse_by_header(file, max_pixels)
        # A multi-picture JPEG is a photograph, followed by previews or depth maps that we leave.
        file_format = "JPEG" if file.format == "MPO" else str(file.format)
        mode = file.mode
        profile = file.info.get("icc_profile")
        file.load()
        _refuse_by_mode(file)
        upright = ImageOps.exif_transpose(file)
        colour, alpha = _split_alpha(upright)
        rgb, converted_from = _to_srgb(colour, profile)
    notes = []
    if converted_from:
        notes.append(f"colours were converted from {converted_from} to sRGB")
    if alpha is not None and np.asarray(alpha).min() < 255:
        canvas = Image.new("RGB", rgb.size, "white")
        canvas.paste(rgb, mask=alpha)
        rgb = canvas
        notes.append("transparency was flattened on white")
    return DecodedImage(
        format=file_format, mode=mode, width=rgb.width, height=rgb.height, image=rgb, notes=tuple(notes)
    )


def rendition_png(image: Image.Image) -> bytes:
    """Encode what participants see: RGB PNG without metadata, the same settings for every image.

    Clean and modified images go through this one function, so that no property of the file tells them apart.
    """
    # From the bare pixels: Pillow would carry a profile or a comment along from ``image.info``.
    bare = Image.fromarray(np.asarray(image.convert("RGB")))
    buffer = io.BytesIO()
    bare.save(buffer, "PNG", compress_level=6)
    return buffer.getvalue()


def thumbnail(image: Image.Image) -> bytes:
    """Encode a small JPEG without metadata, at most 256 pixels on the longer side; for lists, not for participants."""
    small = Image.fromarray(np.asarray(image.convert("RGB")))
    small.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


@contextmanager
def _unreadable_unless_sound() -> Iterator[None]:
    """Turn whatever a decoder raises on damaged data into UnreadableImage: decoders raise nearly anything."""
    try:
        yield
    except UnreadableImage:
        raise
    except Exception as error:
        raise UnreadableImage(f"the file is damaged or cut short ({error})") from error


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Pillow warns of odd metadata, which we drop, and of many pixels, for which we have a lower limit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _open(content: bytes) -> Image.Image:
    try:
        return Image.open(io.BytesIO(content), formats=tuple(ENDINGS))
    except Image.UnidentifiedImageError:
        raise UnreadableImage(
            f"the content is not an image of a known format ({', '.join(ENDINGS)}), whatever its name says"
        ) from None
    except Image.DecompressionBombError:
        raise UnreadableImage("its header declares far too many pixels") from None


def _refuse_by_header(file: Image.Image, max_pixels: int) -> None:
    if file.width * file.height > max_pixels:
        raise UnreadableImage(
            f"it has {file.width} x {file.height} pixels; the limit is {max_pixels / 1_000_000:g} million"
        )
    if file.format != "MPO" and getattr(file, "is_animated", False):
        raise UnreadableImage("it has several frames or pages; save the one that is meant")


def _refuse_by_mode(file: Image.Image) -> None:
    if file.mode in {"I", "F", "LAB", "HSV"} or file.mode.startswith("F"):
        raise UnreadableImage(f"colour mode {file.mode} has no agreed way to be shown; save it as 8- or 16-bit RGB")
    tags = getattr(file, "tag_v2", {})
    if file.mode.startswith("I;16") and tags.get(PHOTOMETRIC_INTERPRETATION) == WHITE_IS_ZERO:
        raise UnreadableImage("16-bit greys that count from white are not supported; save it with black as zero")


def _split_alpha(image: Image.Image) -> tuple[Image.Image, Image.Image | None]:
    """Bring any mode to L, RGB or CMYK, and take the alpha channel (L) apart if there is one."""
    if image.mode.startswith("I;16"):
        values = np.asarray(image).astype(np.uint32)
        return Image.fromarray(((values * 255 + 32_767) // 65_535).astype(np.uint8)), None
    if image.has_transparency_data:
        # "La" and "RGBa" have colours multiplied by alpha; the way to RGBA from "La" is by way of "LA".
        rgba = (image.convert("LA") if image.mode == "La" else image).convert("RGBA")
        return rgba.convert("RGB"), rgba.getchannel("A")
    if image.mode in {"L", "RGB", "CMYK"}:
        return image, None
    if image.mode == "1":
        return image.convert("L"), None
    return image.convert("RGB"), None  # P, YCbCr, RGBX


def _to_srgb(image: Image.Image, profile: bytes | None) -> tuple[Image.Image, str]:
    """Convert L, RGB or CMYK pixels to sRGB RGB; also give the name of the profile if it changed anything.

    A profile for another kind of pixels than the file has says nothing and is ignored, as browsers do.
    """
    space, description = _profile_facts(profile) if profile else ("", "")
    if image.mode == "CMYK":
        if profile is None or space != "CMYK":
            raise UnreadableImage(
                "CMYK without a CMYK colour profile does not say which colours it means; save it as sRGB"
            )
        return _apply(profile, "CMYK", image), description
    if profile is not None and image.mode == "L" and space == "GRAY":
        return (_plain_rgb(image), "") if _is_srgb(profile, "L") else (_apply(profile, "L", image), description)
    rgb = _plain_rgb(image)
    if profile is not None and space == "RGB" and not _is_srgb(profile, "RGB"):
        return _apply(profile, "RGB", rgb), description
    return rgb, ""


def _plain_rgb(image: Image.Image) -> Image.Image:
    return image if image.mode == "RGB" else image.convert("RGB")


@functools.lru_cache(maxsize=64)
def _profile_facts(profile: bytes) -> tuple[str, str]:
    """Colour space and description of an ICC profile; two empty strings if it cannot be read."""
    try:
        parsed = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        description = " ".join(ImageCms.getProfileDescription(parsed).split())
        return parsed.profile.xcolor_space.strip(), description or "a profile without a name"
    except (OSError, ImageCms.PyCMSError):
        return "", ""


@functools.lru_cache(maxsize=64)
def _transform(profile: bytes, mode: str) -> ImageCms.ImageCmsTransform:
    return ImageCms.buildTransform(
        ImageCms.ImageCmsProfile(io.BytesIO(profile)),
        ImageCms.createProfile("sRGB"),
        mode,
        "RGB",
        renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
        flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )


def _apply(profile: bytes, mode: str, image: Image.Image) -> Image.Image:
    converted = ImageCms.applyTransform(image, _transform(profile, mode))
    if converted is None:  # only an in-place transform gives nothing
        raise UnreadableImage("its colour profile could not be applied")
    return converted


@functools.lru_cache(maxsize=64)
def _is_srgb(profile: bytes, mode: str) -> bool:
    """Judge by what the profile does to a lattice of colours: names of profiles mislead."""
    levels = np.linspace(0, 255, 18).round().astype(np.uint8)
    if mode == "L":
        samples = levels[None, :]
        expected = np.repeat(samples[..., None], 3, axis=-1)
    else:
        lattice = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), axis=-1)
        samples = expected = lattice.reshape(18 * 18, 18, 3)
    moved = np.asarray(_apply(profile, mode, Image.fromarray(samples))).astype(int) - expected
    return bool(np.abs(moved).max() <= SRGB_TOLERANCE)
