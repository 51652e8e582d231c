"""The external programs: which there are, what each is needed for, where they are, and how to get OpenTofu.

`survey` looks at all of them, `find` chooses the engine (OpenTofu or Terraform), `install` brings a managed
copy of OpenTofu: the project's release archive, else a build from its Go module. Only `install` and the ways
below it touch the network. Nothing here knows what the programs are run for, beyond a few words for users.
"""
