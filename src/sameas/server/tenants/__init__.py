"""Who may do what, and what each tenant has: access, workspaces, ontologies, word between processes."""
