"""The deployment object: one versioned desired state for all guests, written by one session at a time.

`settings.find_place` finds it. `fetch.fetch` reads the whole object or fails. `validate.check` checks it
against the schema and converts it to the `Desired` model. `writing.write` is the only way to change it:
lease, fetch, change, validate, difference, confirmation, conditional upload. The stores are in `embedded`
(SQLite, memory) and `bucket` (plain JSON in S3). This package does not know plans and states.
"""
