"""The engine: no terminal, no console."""
