"""Images, visitors and page contents for tests of the catalogue's pages."""

import html
import re
from typing import Any

from django.contrib.auth.models import Group
from django.test import Client

from imagedb.models import Attack, Image, TargetModel, Visibility
from tests import factories
from tests.imagedb.api_clients import user

DISTANCES = {"comparison": "same_size", "linf": 8, "l2": 4.5, "changed_share": 0.75, "ssim": 0.981, "ciede2000": 1.25}


def measured(source: Image | None = None, *, attack: Attack, target_model: TargetModel | None, **fields: Any) -> Image:
    """A modified image with distances; ``fields`` replace some."""
    return factories.modified_image(source, attack=attack, target_model=target_model, **{**DISTANCES, **fields})


def visitors() -> dict[str, Client]:
    """One of each kind that sees other images than the rest: the lab's group is named "lab"."""
    member = user("member")
    member.groups.add(Group.objects.get_or_create(name="lab")[0])
    staff = user("staff", is_staff=True)
    accounts = {
        "anonymous": None,
        "without terms": user("plain"),
        "with terms": user("registered", accepted_terms=True),
        "member": member,
        "staff": staff,
        "superuser": user("root", is_superuser=True, is_staff=True),
    }
    clients = {}
    for name, account in accounts.items():
        clients[name] = Client()
        if account:
            clients[name].force_login(account)
    return clients


# Who sees which of the three images; staff without the right to view images see no more than anybody.
SEES = {
    "anonymous": {"public"},
    "without terms": {"public"},
    "with terms": {"public", "registered"},
    "member": {"public", "private"},
    "staff": {"public"},
    "superuser": {"public", "registered", "private"},
}


def pair_of_each_visibility(attack: Attack, target_model: TargetModel) -> dict[str, tuple[Image, Image]]:
    """(clean, modified) images, public, registered, and private to the group "lab"."""
    lab = Group.objects.get_or_create(name="lab")[0]
    pairs = {}
    for visibility in Visibility.values:
        fields = {"visibility": visibility, "group": lab if visibility == Visibility.PRIVATE else None}
        clean = factories.clean_image(original_filename=f"{visibility}.png", **fields)
        pairs[visibility] = (clean, measured(clean, attack=attack, target_model=target_model, **fields))
    return pairs


def text_of(page: str) -> str:
    """What people read of a page, white space collapsed."""
    body = page.split("<main", 1)[1].split("</main>", 1)[0]
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", body))).strip()
