"""Transports times shell dialects."""
