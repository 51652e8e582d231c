"""Import of a cluster or a node into a file of `hypervisors/`, and into the state of its target.

`lists` is a table: which list of the API has the objects of each kind. `survey` reads every object by the
built-in provider, and `entries` makes of its attributes what a person would write. `file` puts the entries
into the file. The proof that the plan is empty and the writing of file and state are those of guests.
"""
