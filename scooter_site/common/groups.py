"""The group of accounts that run studies: what they need, and no more."""

from typing import Any

from django.apps import AppConfig
from django.contrib.auth.models import Group, Permission

RESEARCHERS = "Researchers"
# By app. Not among them: accounts, API tokens, deleting anything but one's own descriptions and drafts, and what an
# administrator grants to who pays people: the panel's ids of participants (studies.view_participantidentity),
# publishing on Prolific, which spends money (studies.spend_panelstudy), confirming payment runs
# (studies.confirm_paymentrun), and importing demographics (studies.add_demographics).
RESEARCHER_PERMISSIONS = {
    "imagedb": (
        "add_attack change_attack delete_attack view_attack add_targetmodel change_targetmodel delete_targetmodel "
        "view_targetmodel add_attackevaluation change_attackevaluation delete_attackevaluation view_attackevaluation "
        "view_imageclass change_image view_image view_prediction add_importbatch view_importbatch "
        "view_importrow add_collection change_collection view_collection add_collectionversion "
        "change_collectionversion delete_collectionversion view_collectionversion view_curationlogentry"
    ),
    "studies": (
        "add_study change_study view_study view_participation view_decision decide_participation "
        "view_participantmessage change_participantmessage add_paymentrun view_paymentrun "
        "view_workspace add_panelstudy change_panelstudy view_panelstudy view_submission change_submission"
    ),
    "leaderboard": (
        "add_board change_board view_board publish_board view_snapshot view_entry change_entry view_recomputation "
        "add_externalresult change_externalresult view_externalresult"
    ),
}


def keep_researchers_group(app_config: AppConfig, **kwargs: Any) -> None:
    """Give the group its permissions of one app (post_migrate). To grant others, make a group of your own."""
    codenames = RESEARCHER_PERMISSIONS.get(app_config.label)
    if codenames is None:
        return
    group, _ = Group.objects.get_or_create(name=RESEARCHERS)
    permissions = Permission.objects.filter(content_type__app_label=app_config.label, codename__in=codenames.split())
    group.permissions.add(*permissions)
