"""Who may do what: users and their tokens, groups, roles, realms, and the access control list."""
