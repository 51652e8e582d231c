"""Import of existing guests: select them on a cluster, write them into a site, and put them into its state.

`selection` selects the guests; `managed` finds those that are already in a state. The provider reads their
configurations; `vm` and `container` convert its attributes to the model, and name every key that the model
does not support. `trial` proves in a temporary state that a plan for these guests is empty. Only then
`takeover` writes the file and the state, and proves it once more. Nothing here ever writes to the cluster.
"""
