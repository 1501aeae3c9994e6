"""What single stages, formats and hand-overs cost, beside plain Python and numpy in the same process."""
