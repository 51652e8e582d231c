"""Parameters of API calls: decoding them, verifying them against the declared schema, property strings.

`verify.Verifier` is the entry: it checks all parameters of one call and reports every problem at once, with
the error texts of Proxmox. `properties` parses and prints the `key=value,...` strings of configurations.
`formats` has one checker for each format name that the API uses.
"""
