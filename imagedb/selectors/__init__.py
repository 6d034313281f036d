"""What may be read of the catalogue."""

from imagedb.selectors.images import is_as_intended
from imagedb.selectors.visibility import has_accepted_terms, visible_images

__all__ = ["has_accepted_terms", "is_as_intended", "visible_images"]
