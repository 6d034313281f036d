"""The terms that an account accepts before it may see images open to registered accounts."""

# Change it whenever the text (templates/imagedb/terms_text.html) changes its meaning: everybody is asked again.
CURRENT_VERSION = "2026-11"
