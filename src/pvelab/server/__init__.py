"""From an HTTP request to its answer: routes, parameters, permissions, errors, the journal of calls."""
