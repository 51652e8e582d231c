"""Controllers of this user as the command line knows them: by port, started, looked at and stopped."""
