"""What the benchmarks draw; run in an environment that has matplotlib and nothing else (see `plotting`)."""
