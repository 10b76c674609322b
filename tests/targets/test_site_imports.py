"""A site loads what it needs to serve; what few sites have a use for would delay all of them."""

from __future__ import annotations

import subprocess
import sys

LATE = ["dfmesh.compiler", "dfmesh.engine.discovery", "dfmesh.engine.isolation", "dfmesh.session", "numpy", "pickle"]
SERVE = """
import sys
from dfmesh.targets.local import site_process
site_process._job_runner()
print(*sorted(set(sys.argv[1:]) & sys.modules.keys()))
"""


def test_a_site_does_not_load_what_it_may_never_need() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", SERVE, *LATE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
