"""Saved datasets: a folder with a manifest and shard files, local or remote."""
