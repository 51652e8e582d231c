"""Changes of the state of a stack that are proposed as a document, approved, and only then made.

`propose` works on a private copy of the state, with the real engine, and plans with that copy. What comes of
it is a document (`StateChange`): what moves, the version of the state that it was made from, and the plan
after it. `apply` makes the change under the lock of the stack, while the state is still that version.
"""
