"""The screens and dialogs: they place panes and turn keys into actions of the app."""
