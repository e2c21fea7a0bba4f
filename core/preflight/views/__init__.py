"""Pure folds of events into what a screen shows: no terminal, no clock of their own, no engine."""
