"""Demographics: read by header, kept apart, and summarised so that nobody can be found in them."""

import csv
import io

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from studies.flow import Outcome
from studies.models import Demographics, Participation
from studies.recruitment.demographics import (
    OTHERS,
    SMALLEST_GROUP,
    PersonRow,
    UnreadableExport,
    read_export,
    summarise,
)
from studies.selectors.demographics import summary
from studies.services import recruitment_sync
from studies.services.demographics import import_demographics
from tests.studies.admin_pages import account, text_of
from tests.studies.pay.people import completed, ended, session

HEADERS = [
    "Submission id",
    "Participant id",
    "Status",
    "Completion code",
    "Time taken",
    "Age",
    "Sex",
    "Country of residence",
]


def export(rows, headers=HEADERS, *, bom=True) -> bytes:
    file = io.StringIO()
    csv.writer(file).writerows([headers, *rows])  # with CRLF
    return ("\ufeff" if bom else "").encode() + file.getvalue().encode()


def row(number, age="31", sex="Female", country="Poland") -> list[str]:
    return [f"{number:024x}", f"{number + 1000:024x}", "APPROVED", "ABC", "612", age, sex, country]


def test_columns_are_found_by_their_headers_wherever_they_stand():
    expected = [PersonRow(f"{1:024x}", {"Age": "31", "Sex": "Female", "Country of residence": "Poland"})]
    assert read_export(export([row(1)])) == expected
    turned = export([list(reversed(row(1)))], list(reversed(HEADERS)), bom=False)
    assert read_export(turned) == [
        PersonRow(f"{1:024x}", {"Country of residence": "Poland", "Sex": "Female", "Age": "31"})
    ]


def test_what_identifies_and_what_was_withdrawn_is_not_kept():
    (one,) = read_export(export([row(1, age="DATA_EXPIRED", sex="CONSENT_REVOKED", country="")]))
    assert one.answers == {}
    (one,) = read_export(export([[*row(1), "192.0.2.7"]], [*HEADERS, "IP"]))
    assert "192.0.2.7" not in one.answers.values()
    assert f"{1001:024x}" not in one.answers.values()


def test_text_in_quotes_may_hold_commas_and_lines():
    (one,) = read_export(export([row(1, country="Bonaire, Sint\nEustatius")]))
    assert one.answers["Country of residence"] == "Bonaire, Sint\nEustatius"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no column"),
        (b"Age,Sex\r\n1,F\r\n", "no column “Submission id”"),
        (b"Submission id,Age\r\n1\r\n", "Line 2 has 1 cells where the header has 2"),
        (b"Submission id,Age\r\n,1\r\n", "Line 2 has no submission id"),
        (b"Submission id,Age,age\r\n1,1,1\r\n", "“age” stands in the file more than once"),
        (b"Submission id,Age\r\n1,1\r\n1,2\r\n", "1 submissions stand more than once"),
        (b"Submission id,Age\r\n1,\xff\r\n", "not in UTF-8"),
        (b"Submission id,Age\r\n1,\x00\r\n", "null characters"),
        (b'Submission id,Age\r\n1,"a\r\n', "cannot be read as CSV"),
    ],
)
def test_an_unreadable_file_is_refused_with_the_place(content, said):
    with pytest.raises(UnreadableExport, match=said):
        read_export(content)


def people(**counts) -> list[dict[str, str]]:
    return [{"Sex": label} for label, count in counts.items() for _ in range(count)]


def groups(found) -> dict[str, int]:
    return dict(found[0].groups)


def test_small_groups_are_put_together():
    found = summarise(people(Male=40, Female=30, Other=6, Unsaid=5))
    assert groups(found) == {"Male": 40, "Female": 30, OTHERS: 11}


def test_a_rest_that_is_small_takes_the_next_group_with_it():
    """Else the three could be found by taking the others from the total."""
    assert groups(summarise(people(Male=40, Female=30, Other=3))) == {"Male": 40, OTHERS: 33}
    assert summarise(people(Male=40, Other=3)) == []


def test_few_people_have_no_summary():
    assert summarise(people(Male=SMALLEST_GROUP - 1)) == []
    assert groups(summarise(people(Male=SMALLEST_GROUP))) == {"Male": SMALLEST_GROUP}


def test_ages_are_banded():
    ages = [{"Age": age} for age in ["18", "24", "25", "64", "65", "90", "17", "x", "²"] for _ in range(10)]
    assert groups(summarise(ages)) == {"18–24": 20, "65 or older": 20, "25–34": 10, "55–64": 10, OTHERS: 30}


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["20", "30", ""])), st.integers(1, 30)))
def test_no_group_is_ever_small_and_all_add_up(counts):
    everybody = [
        {"Sex": sex, **({"Age": age} if age else {})} for (sex, age), count in counts.items() for _ in range(count)
    ]
    for one in summarise(everybody):
        assert all(count >= SMALLEST_GROUP for _, count in one.groups)
        assert sum(count for _, count in one.groups) == len(everybody)


# --- Stored and shown -----------------------------------------------------------------------------------------


@pytest.fixture
def known(fake, published):
    """Twelve who count and one who does not, in step."""
    counting = [completed(fake, published) for _ in range(12)]
    Participation.objects.filter(pk__in=[one.pk for one in counting]).update(is_valid=True)
    ended(fake, published, Outcome.COLOUR_CHECK_FAILED)
    recruitment_sync.read_panel_study(published.pk)
    return counting


def answers(known, **fields) -> bytes:
    rows = [
        [session(one), "p", "APPROVED", "ABC", "612", *fields.get("said", ("31", "Female", "Poland"))] for one in known
    ]
    return export(rows)


@pytest.mark.django_db
def test_an_import_replaces_and_tells_what_it_did_not_know(published, known):
    imported = import_demographics(published.study, answers(known) + export([row(1)]).split(b"\r\n", 1)[1])
    assert (imported.people, imported.unknown) == (12, 1)
    assert {one.question: one.groups for one in summary(published.study)} == {
        "Age": [("25–34", 12)],
        "Sex": [("Female", 12)],
        "Country of residence": [("Poland", 12)],
    }
    import_demographics(published.study, answers(known, said=("CONSENT_REVOKED", "Male", "Poland")))
    assert Demographics.objects.count() == 12
    assert [one.question for one in summary(published.study)] == ["Sex", "Country of residence"]


@pytest.mark.django_db
def test_a_file_with_a_fault_changes_nothing(published, known):
    import_demographics(published.study, answers(known))
    with pytest.raises(UnreadableExport):
        import_demographics(published.study, answers(known, said=("1", "Male", "Poland")) + b"x,y\r\n")
    assert set(Demographics.objects.values_list("answers__Sex", flat=True)) == {"Female"}


@pytest.mark.django_db
def test_the_page_takes_a_file_and_shows_groups_only(client, published, known):
    permissions = ["view_study", "view_participation", "add_demographics", "delete_demographics"]
    client.force_login(account(*(f"studies.{name}" for name in permissions)))
    page = reverse("admin:studies_demographics_study", args=[published.study_id])
    assert "Nothing imported yet" in text_of(client.get(page))
    said = text_of(client.post(page, {"file": SimpleUploadedFile("x.csv", b"Age\r\n1\r\n")}))
    assert "There is no column “Submission id”" in said
    said = text_of(client.post(page, {"file": SimpleUploadedFile("x.csv", answers(known))}, follow=True))
    assert "Demographics of 12 submissions taken over." in said
    assert "Sex Female 12" in said
    assert session(known[0]) not in said
    assert "deleted" in text_of(client.post(f"{page}delete/", follow=True))
    assert not Demographics.objects.exists()


@pytest.mark.django_db
def test_who_may_only_look_sees_summaries_and_imports_nothing(client, viewer, published, known):
    page = reverse("admin:studies_demographics_study", args=[published.study_id])
    assert "Import" not in text_of(client.get(page))
    assert client.post(page, {"file": SimpleUploadedFile("x.csv", answers(known))}).status_code == 403
    assert client.post(f"{page}delete/").status_code == 403
    client.force_login(account("studies.view_study", name="other"))
    assert client.get(page).status_code == 403
