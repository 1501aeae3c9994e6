"""What people do with an input pipeline: one file for each, one function for each library that does it."""
