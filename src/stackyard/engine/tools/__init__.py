"""The external programs: which exist, what needs them, where they are, and how to get OpenTofu.

`survey` checks all of them, `find` selects the engine (OpenTofu or Terraform), `install` installs a managed
copy of OpenTofu: the project's release archive, else a build from its Go module. Only `install` and the
modules that it uses access the network. Except for a short text for users, nothing here knows why a program
is run.
"""
