"""Target `local`: one process per site on this machine. `runner.LocalFederationRunner` is its way in.

Nothing is imported here, so that a site process loads no more than it needs.
"""
