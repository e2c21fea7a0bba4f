"""A running engine, seen from another process of the same user over a local socket."""
