"""File formats: bytes to records and back."""
