"""The kinds of remote storage: web servers, object stores, and what fsspec knows."""
