"""What the YAML says: playbooks, inventories, settings, templates; no target is touched."""
