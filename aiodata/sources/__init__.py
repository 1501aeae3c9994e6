"""Sources, one file each."""
