"""Processes of our own: how they are started, how they end, and that they do not outlive who started them."""
