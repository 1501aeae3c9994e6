"""Consuming methods, one file each."""
