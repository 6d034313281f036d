"""Django's PostgreSQL backend, with a cheaper health check (base.py, where Django looks for it)."""
