"""`dfmesh run` says when a site was lost and the job goes on without repeating results."""

from __future__ import annotations

import json

from cli_process import dfmesh

STUMBLING = """

import os
import pathlib


def double(x):
    mark = pathlib.Path("stumbled")
    if x == 1 and not mark.exists():
        mark.touch()
        os._exit(3)
    return 2 * x
"""


def test_a_job_that_goes_on_after_a_loss(shop):
    with (shop / "cli_shop.py").open("a", encoding="utf-8") as file:
        file.write(STUMBLING)
    federation = shop / "shop.dfm.yaml"
    text = federation.read_text(encoding="utf-8")
    for name in ("numbers", "double"):
        text = text.replace(f"{{adapter: cli_shop.{name}}}", f"{{adapter: cli_shop.{name}, idempotent: true}}")
    federation.write_text(text, encoding="utf-8")
    done = dfmesh("run", "shop.dfm.yaml", "shopping.py", "--param", "n=3", "--target", "local", cwd=shop)
    assert done.returncode == 0, done.stderr
    [line] = [line for line in done.stderr.splitlines() if "was lost" in line]
    assert line.endswith("was lost (exited with code 3); the job goes on from what is unfinished")
    index = json.loads((shop / "dfmesh-results" / "index.json").read_text(encoding="utf-8"))
    assert [lost[0]["kind"] for lost in index["restarts"]] == ["SiteLost"]
    assert sorted(entry["frame"] for entry in index["results"]) == [[0, 0], [0, 1], [0, 2]]
