"""The sources of desired state: a site, a deployment object, a manifest. Each resolves to `desired`."""
