"""The machine that runs pipelines; it knows no stage."""
