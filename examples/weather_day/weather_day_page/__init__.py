"""The report of a weather day: one HTML file that needs nothing else."""
