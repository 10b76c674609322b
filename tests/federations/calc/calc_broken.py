"""A module that cannot be imported: a package it needs is not there."""

import a_package_that_nobody_has  # noqa: F401


def broken() -> int:
    return 1
