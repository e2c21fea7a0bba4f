"""Contracts between what runs tasks and what reaches machines; no behaviour of their own."""
