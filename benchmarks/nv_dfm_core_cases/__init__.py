"""nv-dfm-core, measured through its public API on its local target, in its own environment."""
