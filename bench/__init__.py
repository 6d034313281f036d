"""Measurements of speed and memory, run by hand as python -m bench.NAME from the project folder."""
