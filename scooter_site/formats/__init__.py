"""How dates and times are written, where a page does not say it itself."""
