"""A browser at one study's pages, and what tests expect of what it is shown."""

import json

from django.test import Client
from django.urls import reverse

from studies.flow import Step
from studies.models import Panel, Participation, Study
from studies.views.access import NEWCOMER_COOKIE
from tests import walks

PID, STUDY, SESSION = "5f1a" * 6, "60aa" * 6, "61bb" * 6
WINDOW = {"viewport_width": "1440", "viewport_height": "900", "device_pixel_ratio": "2"}
PROLIFIC_LINK = {"PROLIFIC_PID": PID, "STUDY_ID": STUDY, "SESSION_ID": SESSION}


def fetch(client: Client, address: str):
    """GET a file; ``response.body`` is what a browser would have read."""
    response = client.get(address)
    response.body = response.getvalue()
    return response


class Visitor:
    """A browser at one study."""

    def __init__(self, study: Study, client: Client | None = None) -> None:
        self.study = study
        self.client = client or Client()

    def address(self, name: str, *parts: object) -> str:
        return reverse(f"studies:{name}", args=[self.study.slug, *parts])

    def land(self, **parameters: str):
        """Open the link, and whoever is new the page behind it, as browsers do; gives what the link answered."""
        response = self.client.get(self.address("landing"), parameters)
        if NEWCOMER_COOKIE in response.cookies and response.cookies[NEWCOMER_COOKIE].value:
            self.page()
        return response

    def page(self):
        return self.client.get(self.address("run"))

    def post(self, step: str, **fields: str):
        return self.client.post(self.address("run"), {"step": step, **fields})

    def rate(self, token: object, value: object, **fields: object):
        body = {"token": str(token), "value": value, "touched": True, "first_interaction_ms": 500, **fields}
        body = {"start_position": None, "response_ms": 1200, **body}
        return self.client.post(self.address("rate"), json.dumps(body), content_type="application/json")

    def image(self, kind: str, token: object):
        return fetch(self.client, self.address("image", kind, token))

    @property
    def participation(self) -> Participation:
        response = self.page()
        return Participation.objects.get(pk=response.context["participation"].pk)

    def at(self, step: Step) -> Participation:
        """Land and go to ``step`` by right answers, through the services."""
        assert self.land(**(PROLIFIC_LINK if self.study.panel == Panel.PROLIFIC else {})).status_code == 302
        participation = self.participation
        ways = {
            Step.COLOUR_CHECK: walks.consent,
            Step.INSTRUCTIONS: walks.answer_plates,
            Step.COMPREHENSION: lambda here: walks.finish_instructions(here.pk),
            Step.MAIN: walks.answer_pairs,
            Step.FEEDBACK: walks.rate_all,
            Step.END: lambda here: walks.give_feedback(here.pk, {}),
        }
        for reached, go in ways.items():
            if participation.step == step:
                break
            if reached == Step.COMPREHENSION and step != Step.COMPREHENSION:
                continue  # answer_pairs reads the instructions itself
            participation = go(participation)
        assert participation.step == step
        return participation


def assert_step(response, step: Step) -> None:
    assert response.status_code == 200
    assert f'data-step="{step.value}"' in response.content.decode()


def assert_to_run(response, study: Study) -> None:
    assert response.status_code == 303
    assert response["Location"] == reverse("studies:run", args=[study.slug])


def assert_notice(response, reason: str, status: int) -> None:
    assert (response.status_code, f'data-notice="{reason}"' in response.content.decode()) == (status, True)
