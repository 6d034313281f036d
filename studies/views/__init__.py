"""The participant's pages: they show what the server's pointer says, and hand what is posted to the services."""

from studies.views.contact import contact
from studies.views.images import image
from studies.views.landing import landing
from studies.views.preview import preview, preview_jump, preview_leave
from studies.views.rating import back, heartbeat, rate
from studies.views.run import run
from studies.views.text_preview import text_preview

__all__ = [
    "back",
    "contact",
    "heartbeat",
    "image",
    "landing",
    "preview",
    "preview_jump",
    "preview_leave",
    "rate",
    "run",
    "text_preview",
]
