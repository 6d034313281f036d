"""What the tests of the pages of recruitment open and send."""

import re

from django.urls import reverse


def page_of(panel_study) -> str:
    return reverse("admin:studies_study_recruitment", args=[panel_study.study_id])


def seen_on(page) -> str:
    """What a form says of the state in which the page was shown."""
    found = re.search(r'name="seen" value="(\w+)"', page.content.decode())
    return found[1] if found else ""


def do(panel_study, name) -> str:
    return reverse("admin:studies_study_recruitment_do", args=[panel_study.study_id, name])


def ask_and_do(client, panel_study, name, **given):
    """Read the question, and say yes to it."""
    seen = seen_on(client.get(do(panel_study, name), given))
    return client.post(do(panel_study, name), {**given, "seen": seen}, follow=True)
