"""What the pages of boards say, read from their HTML."""

import html
import re


def table_rows(page):
    """The cells of every result, tags removed, white space collapsed."""
    body = re.search(r'<tbody role="rowgroup">(.*?)</tbody>', page, re.DOTALL)
    if body is None:
        return []
    found = []
    for row in re.findall(r"<tr.*?</tr>", body.group(1), re.DOTALL):
        cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        found.append([re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", cell))).strip() for cell in cells])
    return found
