"""The report of the weather day."""

from __future__ import annotations

import re
from datetime import datetime
from html.parser import HTMLParser
from types import SimpleNamespace

from weather_day_page.page import lead_sentence, write_page
from weather_day_page.summary import SiteRow, bytes_between, in_words, placement_of

COUNTS = {"site": "us", "read": 1200, "kept": 1000, "bytes": 50_000, "rejected": {"position": 3, "visibility": 4}}


def placement():
    def site(name: str, sent: dict[str, int], *operations: tuple[str, int]) -> SimpleNamespace:
        ran = tuple(SimpleNamespace(operation=operation, done=done) for operation, done in operations)
        return SimpleNamespace(site=name, operations=ran, bytes_sent=sent)

    app = site("app", {"us": 700, "client:abc": 90_000}, ("weather.Merge", 2), ("ForEach", 1))
    return placement_of([app, site("us", {"app": 4300}, ("weather.Bin", 2), ("weather.Bin", 1))])


def page(tmp_path) -> str:
    row = SiteRow("us")
    row.add(COUNTS)
    row.bytes_sent = 4300
    file = tmp_path / "index.html"
    frames = [(datetime(1995, 3, 18, hour), b"\x89PNG" + bytes([hour])) for hour in range(3)]
    write_page(file, frames, [row], placement(), bytes_between(placement()), 50_000)
    return file.read_text("utf-8")


def test_placement_counts_calls_and_tells_client_from_sites():
    app, us = placement()
    assert app.operations == (("weather.Merge", 2),)
    assert us.operations == (("weather.Bin", 3),)
    assert app.sent == {"us": 700, "client": 90_000}
    assert bytes_between([app, us]) == 5000


def test_the_sentence():
    assert lead_sentence(5000, 50_000).startswith("5 kB moved between sites instead of the 50 kB of reports, 10 times")
    assert in_words(999) == "999 B"
    assert in_words(1_571_000) == "1.57 MB"


def test_the_page_needs_nothing_else(tmp_path):
    text = page(tmp_path)
    assert not re.search(r"""(src|href)=["'](?!data:)""", text)
    assert not re.search(r"https?://|@import|url\((?!#)", text)
    assert "$" not in text


def test_the_page_says_it_all(tmp_path):
    text = page(tmp_path)
    assert text.count("<img") == 3
    assert text.count('alt="Map of air temperature and pressure, 18 March 1995') == 3
    assert "<td>1,200</td><td>3</td><td>4</td><td>1,000</td><td>4.3 kB</td>" in text
    assert "repeated report" not in text.split("<table>")[1].split("</table>")[0]
    assert "50 kB of reports stay here" in text


class Balance(HTMLParser):
    """Keeps the tags that are open; a tag that closes must be the last opened."""

    def __init__(self):
        super().__init__()
        self.open_tags: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img", "input"):
            self.open_tags.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open_tags.pop() == tag


def test_tags_are_balanced(tmp_path):
    parser = Balance()
    parser.feed(page(tmp_path))
    assert parser.open_tags == []
