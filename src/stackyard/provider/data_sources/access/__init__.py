"""Who may do what: users, groups and roles."""
