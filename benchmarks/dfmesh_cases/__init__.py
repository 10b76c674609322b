"""dfmesh, measured through its public session API on the local target."""
