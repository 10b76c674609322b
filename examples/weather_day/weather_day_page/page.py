"""Writes the report: animation, table, placement picture, and how many bytes moved instead of how many."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from string import Template

from weather_day_page.picture import placement_svg
from weather_day_page.summary import REASONS, WHOLE_REPORTS, SitePlacement, SiteRow, in_words

_TEMPLATE = Path(__file__).with_name("template.html")


def write_page(
    out_path: Path,
    frames: Sequence[tuple[datetime, bytes]],
    site_rows: Sequence[SiteRow],
    placement: Sequence[SitePlacement],
    bytes_moved: int,
    bytes_raw: int,
    home: str = "app",
) -> None:
    """Write the report as one HTML file without any other file or address in it.

    Args:
        out_path: Where to.
        frames: Hour (UTC) and PNG of each map, in order; at least one.
        site_rows: The sites that read reports.
        placement: All sites.
        bytes_moved: Sent from one site to another.
        bytes_raw: Size of all reports read, as Arrow tables.
        home: Site that the client talks to.
    """
    first = frames[0][0]
    notes = {row.site: f"{in_words(row.bytes_read)} of reports stay here" for row in site_rows}
    page = Template(_TEMPLATE.read_text("utf-8")).substitute(
        day=f"{first.day} {first:%B %Y}",
        maps="\n".join(_map(number, hour, png) for number, (hour, png) in enumerate(frames)),
        last=len(frames) - 1,
        count=len(frames),
        lead=lead_sentence(bytes_moved, bytes_raw),
        table=_table(site_rows),
        reports=f"{sum(row.read for row in site_rows):,}",
        sites=len(site_rows),
        picture=placement_svg(placement, home, notes),
    )
    out_path.write_text(page, "utf-8")


def lead_sentence(bytes_moved: int, bytes_raw: int) -> str:
    """Say how many bytes moved instead of how many."""
    share = f", {bytes_raw / bytes_moved:.0f} times less" if bytes_moved else ""
    return (
        f"{in_words(bytes_moved)} moved between sites instead of the {in_words(bytes_raw)} of reports{share}; "
        "no report left its site."
    )


def _map(number: int, hour: datetime, png: bytes) -> str:
    text = f"Map of air temperature and pressure, {hour.day} {hour:%B %Y, %H:%M} UTC"
    current = ' class="current"' if number == 0 else ""
    data = base64.b64encode(png).decode("ascii")
    return f'<img{current} alt="{text}" data-time="{hour:%H:%M} UTC" src="data:image/png;base64,{data}">'


def _table(rows: Sequence[SiteRow]) -> str:
    """Make the table; reasons for which nothing was dropped anywhere have no column."""
    used = [reason for reason in REASONS if any(row.rejected[reason] for row in rows)]
    whole = [reason for reason in used if reason in WHOLE_REPORTS]
    single = [reason for reason in used if reason not in WHOLE_REPORTS]
    groups = "".join(
        f'<th scope="colgroup" colspan="{len(reasons)}">{name}</th>'
        for name, reasons in (("reports dropped", whole), ("values dropped", single))
        if reasons
    )
    names = "".join(f'<th scope="col">{REASONS[reason]}</th>' for reason in (*whole, *single))
    head = (
        f'<tr><th scope="col" rowspan="2">site</th><th scope="col" rowspan="2">reports read</th>{groups}'
        f'<th scope="col" rowspan="2">reports kept</th><th scope="col" rowspan="2">sent to other sites</th></tr>'
        f"<tr>{names}</tr>"
    )
    body = "".join(_row(row, (*whole, *single)) for row in rows)
    return f"<table><thead>{head}</thead><tbody>{body}</tbody><tfoot>{_row(_total(rows), used)}</tfoot></table>"


def _row(row: SiteRow, reasons: Sequence[str]) -> str:
    numbers = [row.read, *(row.rejected[reason] for reason in reasons), row.kept]
    cells = "".join(f"<td>{number:,}</td>" for number in numbers)
    return f'<tr><th scope="row">{escape(row.site)}</th>{cells}<td>{in_words(row.bytes_sent)}</td></tr>'


def _total(rows: Sequence[SiteRow]) -> SiteRow:
    total = SiteRow("all")
    for row in rows:
        total.add({"read": row.read, "kept": row.kept, "bytes": row.bytes_read, "rejected": row.rejected})
        total.bytes_sent += row.bytes_sent
    return total
