"""From an empty site to a row on the leaderboard, as people do it: real images, real browser, real processes.

A researcher clicks a study together in the admin, a participant takes it (mouse for the first half, keyboard alone
for the second; with a reload, the back button and a double click on the way), and the pair's row appears.
"""

import hashlib
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, Playwright, expect, sync_playwright

from tests.browser import chromium_options
from tests.flows.real_images import ATTACK, TARGET_MODEL, write_archive
from tests.services.site import Site, running_site, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.services]

ADMIN = ("researcher", "correct-horse-battery")
SLUG = "k7f3m9qw"
TRIALS = 106
KEYBOARD_FROM = 54
RELOAD_AT, BACK_AT, DOUBLE_CLICK_AT, ZERO_AT = 10, 20, 30, 40


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as running:
        yield running


def rows(site: Site, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """Read the site's own database."""
    with closing(sqlite3.connect(f"file:{site.database}?mode=ro", uri=True)) as connection:
        return connection.execute(query, values).fetchall()


class Faults:
    """Counts what must not happen in a browser: script errors, console errors, failed requests, error answers."""

    def __init__(self, context: BrowserContext) -> None:
        self.found: list[str] = []
        context.on("weberror", lambda error: self.found.append(f"script: {error.error}"))
        context.on("console", lambda message: message.type == "error" and self.found.append(f"console: {message.text}"))
        context.on(
            "response", lambda answer: answer.status >= 400 and self.found.append(f"{answer.status} {answer.url}")
        )
        context.on("requestfailed", self._failed)

    def _failed(self, request: Any) -> None:
        # A navigation cancels what the old page was still loading; that is no fault of the site.
        if request.failure != "net::ERR_ABORTED":
            self.found.append(f"{request.failure} {request.url}")


def test_from_an_empty_site_to_the_leaderboard(playwright: Playwright, shared_data: Path, tmp_path: Path) -> None:
    archive = tmp_path / "photographs.zip"
    assert write_archive(shared_data, archive) == 260
    with running_site(tmp_path, admin=ADMIN) as site:
        browser = playwright.chromium.launch(**chromium_options())
        desk = browser.new_context(viewport={"width": 1440, "height": 1000})
        desk_faults = Faults(desk)
        desk_page = desk.new_page()
        link = make_study(desk_page, site, archive)

        home = browser.new_context(viewport={"width": 1280, "height": 900})
        home_faults = Faults(home)
        answers = Participant(home.new_page(), site).take_part(link)

        assert len(answers) == TRIALS
        assert 0 in answers.values()
        stored = rows(
            site,
            "SELECT trial.position, rating.value FROM studies_rating rating JOIN studies_trial trial"
            " ON trial.id = rating.trial_id ORDER BY trial.position",
        )
        assert stored == sorted(answers.items())
        assert rows(site, "SELECT outcome, is_valid, kind FROM studies_participation") == [("completed", 1, "real")]

        visitor = browser.new_context(viewport={"width": 1440, "height": 900})
        visitor_faults = Faults(visitor)
        check_draft(site, answers)
        page = visitor.new_page()
        page.goto(f"{site.url}/leaderboard/")
        expect(page.get_by_text(ATTACK)).to_have_count(0)
        publish(desk_page, site)
        page.goto(f"{site.url}/leaderboard/")
        expect(page.get_by_role("row", name=re.compile(ATTACK))).to_be_visible()
        check_download(site)
        assert (desk_faults.found, home_faults.found, visitor_faults.found) == ([], [], [])
        browser.close()


# --- The researcher ---------------------------------------------------------------------------------------------


def make_study(page: Page, site: Site, archive: Path) -> str:
    """Click from the log-in page to a running study; return the participant link it shows."""
    page.goto(f"{site.url}/admin/")
    page.fill("#id_username", ADMIN[0])
    page.fill("#id_password", ADMIN[1])
    page.get_by_role("button", name=re.compile("log in|sign in", re.IGNORECASE)).click()

    for path, name in (("imagedb/attack", ATTACK), ("imagedb/targetmodel", TARGET_MODEL)):
        page.goto(f"{site.url}/admin/{path}/add/")
        page.fill("#id_name", name)
        page.fill("#id_slug", name)
        save(page)

    page.goto(f"{site.url}/admin/imagedb/importbatch/add/")
    page.set_input_files("#id_archive", str(archive))
    save(page)
    wait_until(
        lambda: rows(site, "SELECT status FROM imagedb_importbatch") == [("done",)], "the worker imported the ZIP", 180
    )
    assert rows(site, "SELECT imported_count, failed_count FROM imagedb_importbatch") == [(260, 0)]

    page.goto(f"{site.url}/admin/studies/study/add/")
    page.fill("#id_title", "A first study")
    page.fill("#id_slug", SLUG)
    page.check("input[name=preset_name][value=paper]")
    choose(page, "attack", ATTACK)
    choose(page, "target_model", TARGET_MODEL)
    save(page)

    page.fill("#id_dataset_count", "1")
    page.fill("#id_contact_email", "lab@example.org")
    save(page)
    page.get_by_role("button", name="Build datasets and check images").click()
    wait_until(lambda: study_status(site) == "ready", "the worker built the datasets", 180)
    page.reload()

    with page.expect_popup() as opened:
        page.get_by_role("button", name="Preview as a participant").click()
    look_through_preview(opened.value)
    assert rows(site, "SELECT COUNT(*) FROM studies_participation") == [(0,)]

    page.reload()
    page.get_by_role("link", name=re.compile("Launch")).click()
    page.get_by_role("button", name="Launch").click()
    expect(page.locator("#participant-link")).to_be_visible()
    assert study_status(site) == "running"
    return page.input_value("#participant-link")


def study_status(site: Site) -> str:
    return rows(site, "SELECT status FROM studies_study")[0][0]


def save(page: Page) -> None:
    page.locator("[name=_save]").first.click()
    expect(page.locator(".errornote, .errorlist")).to_have_count(0)


def choose(page: Page, field: str, text: str) -> None:
    """Pick ``text`` in an autocomplete field of the admin."""
    page.locator(f"#id_{field} + .select2 .select2-selection").click()
    page.locator(".select2-search__field").last.fill(text)
    page.locator(".select2-results__option", has_text=text).first.click()


def look_through_preview(page: Page) -> None:
    """See the first and the main step as a participant would, then leave the preview."""
    expect(page.locator("body")).to_have_attribute("data-step", "consent")
    page.locator("#preview-step").select_option("main")
    page.get_by_role("button", name=re.compile("Go|Jump", re.IGNORECASE)).click()
    expect(page.locator("#stage img")).to_be_visible()
    page.get_by_role("button", name=re.compile("Leave", re.IGNORECASE)).click()
    expect(page.locator("body")).not_to_have_attribute("data-step", "main")
    page.close()


# --- The participant --------------------------------------------------------------------------------------------


class Participant:
    """Somebody who knows the right answers (from the site's database) and clicks and types them."""

    def __init__(self, page: Page, site: Site) -> None:
        self.page = page
        self.site = site
        self.answers: dict[int, int] = {}

    def take_part(self, link: str) -> dict[int, int]:
        """The whole study; returns the rating given at each position."""
        page = self.page
        page.goto(link)
        page.get_by_role("button", name="I agree").click()
        for number in range(1, 6):
            self.answer_plate(by_keyboard=number > 2)
        expect(page.locator("body")).to_have_attribute("data-step", "instructions")
        page.get_by_role("button", name=re.compile("continue|next|start", re.IGNORECASE)).click()
        for number in range(1, 7):
            self.answer_pair(by_keyboard=number > 3)
        expect(page.locator("body")).to_have_attribute("data-step", "main")
        for position in range(1, TRIALS + 1):
            self.rate(position)
        expect(page.locator("body")).to_have_attribute("data-step", "feedback")
        page.get_by_role("button", name=re.compile("finish|send|continue", re.IGNORECASE)).first.click()
        expect(page.locator("body")).to_have_attribute("data-outcome", "completed")
        return self.answers

    def answer_plate(self, *, by_keyboard: bool) -> None:
        token = self.page.input_value("input[name=token]")
        ((digit,),) = rows(
            self.site,
            "SELECT plate.digit FROM studies_platetrial trial JOIN studies_colourplate plate"
            " ON plate.id = trial.plate_id WHERE trial.token = ?",
            token.replace("-", ""),
        )
        answer = "none" if digit is None else str(digit)
        if by_keyboard:
            self.page.keyboard.press("n" if digit is None else answer)
            self.leave_page(lambda: self.page.keyboard.press("Enter"))
        else:
            self.page.locator(f"label:has(input[value='{answer}'])").click()
            self.leave_page(lambda: self.page.get_by_role("button", name="Next").click())

    def answer_pair(self, *, by_keyboard: bool) -> None:
        token = self.page.input_value("input[name=token]")
        ((side,),) = rows(
            self.site, "SELECT modified_side FROM studies_pairtrial WHERE token = ?", token.replace("-", "")
        )
        if by_keyboard:
            self.page.keyboard.press("ArrowLeft" if side == "left" else "ArrowRight")
            self.leave_page(lambda: self.page.keyboard.press("Enter"))
        else:
            self.page.locator(f"label:has(input[value='{side}'])").click()
            self.leave_page(lambda: self.page.get_by_role("button", name="Next").click())

    def leave_page(self, act: Any) -> None:
        expect(self.page.locator("[data-needs-images]")).to_be_enabled()
        with self.page.expect_navigation():
            act()

    # --- Ratings

    def rate(self, position: int) -> None:
        """Rate the item at ``position`` with a value of its own, and note the value the page showed."""
        page = self.page
        self.wait_for(position)
        if position == RELOAD_AT:
            page.reload()
            self.wait_for(position)
        if position == BACK_AT:
            page.go_back()
            page.goto(f"{self.site.url}/s/{SLUG}/run/")
            self.wait_for(position)
        text = page.locator("#stage-text")
        wanted = self.wanted_value(position, text.inner_text() if text.is_visible() else "")
        if position < KEYBOARD_FROM:
            self.click_scale(wanted)
        else:
            self.press_scale(wanted)
        self.answers[position] = int(page.input_value("#slider-input"))
        if position >= KEYBOARD_FROM:
            page.keyboard.press("Enter")
        elif position == DOUBLE_CLICK_AT:
            page.locator("#next").dblclick()
        else:
            page.locator("#next").click()

    def wait_for(self, position: int) -> None:
        expect(self.page.locator("#position")).to_have_text(f"{position} of {TRIALS}")
        expect(self.page.locator("#slider-input")).to_be_enabled()
        expect(self.page.locator("#next")).to_be_disabled()

    def wanted_value(self, position: int, text: str) -> int:
        if position >= ZERO_AT and not text and 0 not in self.answers.values():
            return 0
        if text:  # an instructed response says in the item what to answer
            (number,) = re.findall(r"[+−-]?\d+", text)
            return int(number.replace("−", "-"))
        ((is_modified,),) = rows(
            self.site,
            "SELECT COALESCE(image.kind, 'modified') = 'modified' FROM studies_trial trial"
            " LEFT JOIN imagedb_image image ON image.id = trial.image_id WHERE trial.position = ?",
            position,
        )
        return 90 - position % 40 if is_modified else position % 40 - 80

    def click_scale(self, value: int) -> None:
        thumb = 28
        box = self.page.locator("#slider-input").bounding_box()
        assert box is not None
        x = box["x"] + thumb / 2 + (value + 100) / 200 * (box["width"] - thumb)
        self.page.mouse.click(x, box["y"] + box["height"] / 2)

    def press_scale(self, value: int) -> None:
        """To an end of the scale, then with the arrows to the value."""
        near_end, key, distance = (
            ("End", "ArrowLeft", 100 - value) if value > 0 else ("Home", "ArrowRight", value + 100)
        )
        self.page.keyboard.press(near_end)
        for _ in range(distance):
            self.page.keyboard.press(key)


def publish(page: Page, site: Site) -> None:
    """Look at the draft beside what is published, and publish it."""
    page.goto(f"{site.url}/admin/leaderboard/board/")
    page.get_by_role("link", name="Scale −100 to 100").click()
    expect(page.get_by_role("row", name=re.compile(f"{ATTACK}.*added"))).to_be_visible()
    page.get_by_role("link", name="Publish…").click()
    page.get_by_label("Note").fill("The first result.")
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("is published. Its digest is")).to_be_visible()
    assert "equal (1 entries computed again)" in site.manage("verify_snapshot", "scale-minus-100-to-100/1")


# --- The visitor ------------------------------------------------------------------------------------------------


def check_draft(site: Site, answers: dict[int, int]) -> None:
    """The row is computed by itself, with the counts and means of what was answered."""
    wait_until(
        lambda: rows(site, "SELECT ratings FROM leaderboard_entry") == [(100,)], "the worker computed the row", 60
    )
    kinds = dict(
        rows(
            site,
            "SELECT trial.position, image.kind FROM studies_trial trial JOIN imagedb_image image"
            " ON image.id = trial.image_id",
        )
    )
    means = {
        kind: sum(answers[position] for position, of in kinds.items() if of == kind) / 50
        for kind in ("modified", "clean")
    }
    ((participants, mean_modified, mean_clean, difference),) = rows(
        site, "SELECT participants, mean_modified, mean_clean, mean_difference FROM leaderboard_entry"
    )
    assert participants == 1
    assert (mean_modified, mean_clean) == pytest.approx((means["modified"], means["clean"]))
    assert difference == pytest.approx(means["modified"] - means["clean"])


def check_download(site: Site) -> None:
    """An API client with a token finds all images and downloads one, byte for byte."""
    token = site.manage("create_api_token", ADMIN[0], "download").strip()
    with httpx.Client(headers={"Authorization": f"Token {token}"}) as client:
        found = []
        address: str | None = f"{site.url}/api/v1/images/?kind=modified&page_size=100"
        while address:
            page = client.get(address).json()
            found += page["results"]
            address = page["next"]
        assert len({image["id"] for image in found}) == 130
        image = found[0]
        content = client.get(f"{site.url}/api/v1/images/{image['id']}/file/").content
        assert hashlib.sha256(content).hexdigest() == image["original_sha256"]
        assert httpx.get(f"{site.url}/api/v1/images/{image['id']}/").status_code == 404, "not public"
