"""Execution over ports: the runner knows no transport and no module by name."""
