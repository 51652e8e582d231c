"""The labs that run on this machine, as the command line knows them: by name, started, reached and stopped.

Nothing here imports the lab itself: what only asks or stops a lab stays quick.
"""
