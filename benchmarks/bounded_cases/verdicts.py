"""What is said of a case: each claim with the limit that the issue sets, and whether it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bounded_cases.watching import LIMIT_BYTES, MEGABYTE, Watch


@dataclass
class Verdicts:
    """The claims of one case.

    Attributes:
        case: Name of the case.
        lines: What was claimed, in order, with the outcome first.
        held: Whether all of them hold.
    """

    case: str
    lines: list[str] = field(default_factory=list)
    held: bool = True

    def claim(self, holds: bool, text: str) -> None:
        """Add a claim."""
        self.held = self.held and holds
        self.lines.append(f"{'holds' if holds else 'FAILS'}  {text}")

    def note(self, text: str) -> None:
        """Add what is worth knowing and no claim."""
        self.lines.append(f"       {text}")

    def flat(self, watch: Watch, more: Mapping[str, int] | None = None) -> None:
        """Claim that no process rises by more than the limit after the warm-up.

        Args:
            watch: What was seen.
            more: Bytes that a process may hold besides, by its name.
        """
        for process in sorted(watch.memory):
            rise, allowed = watch.rise(process), LIMIT_BYTES + (more or {}).get(process, 0)
            self.claim(
                rise <= allowed,
                f"{process}: resident memory rises by at most {rise / MEGABYTE:.1f} MB after the warm-up "
                f"(limit {allowed / MEGABYTE:.0f} MB), {60 * watch.slope(process) / MEGABYTE:+.2f} MB/min at the end",
            )

    def text(self) -> str:
        return "\n".join([f"{self.case}: {'all of it holds' if self.held else 'NOT bounded'}", *self.lines])
