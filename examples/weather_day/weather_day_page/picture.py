"""The placement picture: which operations ran at which site, and the bytes between them, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from weather_day_page.summary import SitePlacement, in_words

_WIDTH, _BOX, _LINE, _GAP = 900, 250, 20, 26
_LEFT, _MIDDLE, _RIGHT = 10, 440, 780


def placement_svg(placement: Sequence[SitePlacement], home: str, notes: Mapping[str, str]) -> str:
    """Draw the sites: the one that the client talks to in the middle, all others on the left, the client on the right.

    Args:
        placement: The sites.
        home: Name of the site that the client talks to.
        notes: Site to a line of text in its box.

    Returns:
        An `svg` element. Colours come from the CSS of the page.
    """
    others = [site for site in placement if site.site != home]
    centre = next((site for site in placement if site.site == home), SitePlacement(home, (), {}))
    tops = _tops([_height(site, notes) for site in others])
    height = max(tops[-1] - _GAP + 10, _height(centre, notes) + 20)
    middle = (height - _height(centre, notes)) / 2
    parts = [_box(centre, _MIDDLE, middle, notes), _client(height / 2)]
    ports = [middle + _height(centre, notes) * (index + 0.5) / len(others) for index in range(len(others))]
    for site, top, port in zip(others, tops, ports, strict=False):
        beside = top + _height(site, notes) / 2
        parts += [_box(site, _LEFT, top, notes), *_link(site, centre, beside, port)]
    parts.append(_arrow((_MIDDLE + _BOX, height / 2), (_RIGHT, height / 2), centre.sent.get("client", 0), above=True))
    title = "Operations at each site and bytes sent between them"
    return (
        f'<svg class="placement" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{title}">'
        f"{_MARKER}{''.join(parts)}</svg>"
    )


_MARKER = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" '
    'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>'
)


def _height(site: SitePlacement, notes: Mapping[str, str]) -> int:
    return 42 + _LINE * (len(site.operations) + (site.site in notes))


def _tops(heights: Sequence[int]) -> list[int]:
    """Where each box begins, and behind the last one where a further one would."""
    tops = [10]
    for height in heights:
        tops.append(tops[-1] + height + _GAP)
    return tops


def _box(site: SitePlacement, left: float, top: float, notes: Mapping[str, str]) -> str:
    lines = [f"{escape(name)} <tspan class='times'>× {calls}</tspan>" for name, calls in site.operations]
    texts = [
        f'<text x="{left + 16}" y="{top + 50 + _LINE * index:.0f}">{line}</text>' for index, line in enumerate(lines)
    ]
    if site.site in notes:
        y = top + 50 + _LINE * len(lines)
        texts.append(f'<text class="note" x="{left + 16}" y="{y:.0f}">{escape(notes[site.site])}</text>')
    return (
        f'<rect x="{left}" y="{top:.0f}" width="{_BOX}" height="{_height(site, notes)}" rx="8"/>'
        f'<text class="name" x="{left + 16}" y="{top + 26:.0f}">{escape(site.site)}</text>{"".join(texts)}'
    )


def _client(middle: float) -> str:
    return (
        f'<rect class="client" x="{_RIGHT}" y="{middle - 24:.0f}" width="110" height="48" rx="24"/>'
        f'<text class="name" x="{_RIGHT + 55}" y="{middle + 6:.0f}" text-anchor="middle">client</text>'
    )


def _link(site: SitePlacement, centre: SitePlacement, beside: float, port: float) -> list[str]:
    """Draw both directions between a site on the left and the one in the middle."""
    left, right = _LEFT + _BOX, _MIDDLE
    there = _arrow((left, beside - 6), (right, port - 6), site.sent.get(centre.site, 0), above=True)
    back = _arrow((right, port + 6), (left, beside + 6), centre.sent.get(site.site, 0), above=False)
    return [there, back]


def _arrow(start: tuple[float, float], end: tuple[float, float], number: int, *, above: bool) -> str:
    """Draw a curve from start to end, thicker for more bytes, with the bytes written at its middle."""
    (x1, y1), (x2, y2) = start, end
    bend = (x1 + x2) / 2
    thick = 1 + min(4.0, number / 25_000)
    y = (y1 + y2) / 2 + (-8 if above else 18)
    falls = ((y2 > y1) - (y2 < y1)) * (1 if x2 > x1 else -1)
    x = bend + 34 * falls * (1 if above else -1)  # beside a steep line, not on it
    return (
        f'<path class="link" stroke-width="{thick:.1f}" marker-end="url(#tip)" '
        f'd="M{x1:.0f} {y1:.0f}C{bend:.0f} {y1:.0f} {bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"/>'
        f'<text class="bytes" x="{x:.0f}" y="{y:.0f}" text-anchor="middle">{in_words(number)}</text>'
    )
