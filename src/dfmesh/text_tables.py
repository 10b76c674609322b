"""Tables: columns of text for terminals and files, HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def aligned(rows: Sequence[Sequence[str]], numbers_from: int | None = None) -> list[str]:
    """Write rows of cells as lines in which the columns stand below one another.

    Args:
        rows: The titles, and the rows.
        numbers_from: The first column that is aligned on the right, as all behind it; None for none.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = len(widths) if numbers_from is None else numbers_from
    return [
        "  ".join(
            cell.ljust(width) if number < left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def html_table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Write a table for a notebook; cells may hold any text."""
    head, *body = (
        "".join(f"<{tag} style='text-align:left'>{escape(cell)}</{tag}>" for cell in cells)
        for tag, cells in (("th", titles), *(("td", row) for row in rows))
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(f'<tr>{row}</tr>' for row in body)}</tbody></table>"


__all__ = ["aligned", "html_table"]
