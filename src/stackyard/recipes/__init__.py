"""Recipes: new stacks from skeletons that are part of stackyard, or from a stack of the repository.

`modules` and `stacks` hold OpenTofu code that is copied into the repository of the user, who owns it from
then on. `new_stack` puts a stack together in a hidden folder and moves it to its place in one step.
"""
