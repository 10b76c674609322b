"""Target `up`: a federation that runs on its own (`dfmesh up FILE`), which any process of its user can use."""
