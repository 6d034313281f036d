"""The demonstration that `make demo` installs, loads and runs. Part of the composition root: it may use every app."""

OPEN_STUDY_SLUG = "demo"
ADMIN_NAME = "admin"
