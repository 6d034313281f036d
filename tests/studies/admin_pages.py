"""What the tests of the study pages of the admin send and read."""

import html
import re

from django.contrib.auth.models import Permission, User
from django.urls import reverse

from studies import selectors
from studies.models import Study, TextKind


def account(*permissions: str, name: str = "somebody") -> User:
    user = User.objects.create_user(name, is_staff=True)
    for permission in permissions:
        app, codename = permission.split(".")
        user.user_permissions.add(Permission.objects.get(content_type__app_label=app, codename=codename))
    return user


def do(study, action):
    return reverse("admin:studies_study_do", args=[study.pk, action])


def text_of(response) -> str:
    """What a person reads on a page, in one line."""
    content = re.sub(r"<(script|style).*?</\1>", " ", response.content.decode(), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", content)).split())


def as_browsers_send(text):
    return text.replace("\n", "\r\n")


def posted(study, **changes):
    """The settings form as a browser sends it, with ``changes``."""
    names = [field.name for field in Study._meta.concrete_fields if field.editable and field.name != "id"]
    data = {}
    for name in names:
        value = getattr(study, Study._meta.get_field(name).attname)
        if not isinstance(value, bool):
            data[name] = value
        elif value:
            data[name] = "on"
    for kind in TextKind:
        data[f"text_{kind.value}"] = as_browsers_send(selectors.study_text(study, kind).body)
    codes = list(study.completion_codes.all())
    data |= {
        "completion_codes-TOTAL_FORMS": len(codes),
        "completion_codes-INITIAL_FORMS": len(codes),
    }
    for number, code in enumerate(codes):
        data |= {
            f"completion_codes-{number}-id": code.pk,
            f"completion_codes-{number}-study": study.pk,
            f"completion_codes-{number}-code": code.code,
        }
    return {**data, "_save": "Save", **changes}
