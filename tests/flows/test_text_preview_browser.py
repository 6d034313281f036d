"""A researcher looks at a text in real Chromium before saving it."""

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from playwright.sync_api import expect

from scooter_site.common.admin_tools import change_url
from studies.models import StudyText
from tests import factories
from tests.flows.participant_pages import PHONE, assert_accessible, assert_fits

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, serialized_rollback=True)]


@pytest.mark.parametrize("options", [{}, PHONE], ids=["computer", "phone"])
def test_what_is_typed_opens_in_another_tab_and_its_buttons_send_nothing(open_page, live_server, client, options):
    study = factories.study(phones_allowed=True)
    client.force_login(User.objects.create_superuser("staff", password="x"))
    before = StudyText.objects.count()
    # Chromium says in its console that the sandbox kept the form back.
    with open_page(faults_expected=True, **options) as page:
        cookie = {"name": settings.SESSION_COOKIE_NAME, "url": live_server.url}
        page.context.add_cookies([cookie | {"value": client.cookies[settings.SESSION_COOKIE_NAME].value}])
        page.goto(live_server.url + change_url(study))
        page.locator("[name=text_feedback]").fill("sure: Sure? | No | Rather | Yes\nwhy: Why?")
        with page.context.expect_page() as opened:
            page.locator('[formaction$="/preview/text/feedback/"]').click()
        preview = opened.value
        expect(preview.locator("legend")).to_have_text("Sure?")
        assert_accessible(preview)
        assert_fits(preview)
        preview.get_by_role("radio", name="Rather").check()
        preview.get_by_role("button", name="Finish").click()
        expect(preview.get_by_role("radio", name="Rather")).to_be_checked()
        assert preview.url.endswith("/preview/text/feedback/")
    assert StudyText.objects.count() == before
