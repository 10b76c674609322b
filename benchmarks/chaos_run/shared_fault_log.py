"""The record of faults where several processes do faults to the same federation: in a file."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import asdict
from pathlib import Path

from chaos_run.faults import FaultLog, Loss


class SharedFaultLog(FaultLog):
    """As `FaultLog`; what one process notes of sites that died all others see."""

    def __init__(self, path: Path) -> None:
        """Begin.

        Args:
            path: The file; need not be there.
        """
        super().__init__()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._reading = threading.Lock()
        self._read_to = 0
        self._rest = b""

    def lose(self, loss: Loss) -> None:
        """As `FaultLog.lose`."""
        self._append({"loss": asdict(loss)})

    def settle(self, job: str, until: float) -> None:
        """As `FaultLog.settle`."""
        self._append({"job": job, "until": until})

    def losses(self, begin: float, end: float) -> list[Loss]:
        """As `FaultLog.losses`."""
        with self._reading:  # Whoever asks meanwhile is to see all of it, too.
            for entry in self._read():
                if "loss" in entry:
                    super().lose(Loss(**entry["loss"]))
                else:
                    super().settle(entry["job"], entry["until"])
            return super().losses(begin, end)

    def _append(self, entry: dict[str, object]) -> None:
        os.write(self._file, json.dumps(entry).encode() + b"\n")

    def _read(self) -> list[dict[str, object]]:
        data = self._rest
        while part := os.pread(self._file, 1 << 16, self._read_to):
            self._read_to += len(part)
            data += part
        *lines, self._rest = data.split(b"\n")
        return [json.loads(line) for line in lines]
