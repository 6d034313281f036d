"""Code every app may use. It imports no app of the project."""
