"""What may be read of the catalogue."""

from imagedb.selectors.images import clean_images_taken_for_another_class, is_as_intended
from imagedb.selectors.visibility import has_accepted_terms, visible_images

__all__ = ["clean_images_taken_for_another_class", "has_accepted_terms", "is_as_intended", "visible_images"]
