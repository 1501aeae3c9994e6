"""Transformations, one file each, named as the method."""
