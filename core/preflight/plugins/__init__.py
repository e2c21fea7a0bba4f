"""Plugins, the host side: found, started, spoken to, cancelled and ended."""
