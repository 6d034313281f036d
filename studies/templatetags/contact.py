"""The way to the researchers, for every page of a participant."""

from typing import Any

from django import template

from studies.selectors.participations import has_new_answer

register = template.Library()


@register.inclusion_tag("studies/contact_link.html", takes_context=True)
def contact_link(context: dict[str, Any]) -> dict[str, Any]:
    """A link to the contact page, that says when there is a new answer; nothing where nobody's session is known."""
    participation = context.get("participation")
    if participation is None or context.get("is_contact_page"):
        return {}
    return {
        "study": participation.study,
        "has_new_answer": has_new_answer(participation),
    }
