"""Bidirectional JSON-RPC 2.0, one object a line: frames and machine without I/O, peer with."""
