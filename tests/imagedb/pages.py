"""What people read on a page."""

import html
import re


def text_of(response) -> str:
    """The words of a page, without scripts and styles."""
    content = re.sub(r"<(script|style).*?</\1>", " ", response.content.decode(), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", content)).split())
