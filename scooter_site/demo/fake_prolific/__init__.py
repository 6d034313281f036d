"""A stand-in for Prolific: a real HTTP server with its endpoints, states, refusals, pages of lists and webhooks.

    python -m scooter_site.demo.fake_prolific --port 8010

It shares no code with the client that it is there to test, and keeps everything in memory. ``FakeProlific`` serves it
from a test. Where Prolific's own documentation is silent, the choice made here is named where it is made.
"""

from scooter_site.demo.fake_prolific.server import FakeProlific

__all__ = ["FakeProlific"]
