"""The console and the command line."""
