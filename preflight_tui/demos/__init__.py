"""Runs that never were: scenes of events with a clock of their own, for demos and screenshots."""
