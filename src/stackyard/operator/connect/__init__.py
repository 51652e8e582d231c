"""`stackyard connect`: a cluster becomes part of a site, with a token that may do what the site needs.

`survey` reads the cluster. `access` compares what the chosen features need with what there is. `site_files`
plans the files of the site, and `run` performs everything: it checks all that can be checked before it
changes anything, creates role, user and token, and writes the files. Nothing here asks or prints.
"""
