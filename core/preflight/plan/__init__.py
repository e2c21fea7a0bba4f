"""Pure planning: what will run where, in which order."""
