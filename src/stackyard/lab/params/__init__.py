"""Parameters of API calls: decoding them, verifying them against the declared schema, property strings.

`verify.Verifier` is the entry: it checks everything about the parameters of one call and reports all
that is wrong at once, in Proxmox's words. `properties` reads and prints the `key=value,...` strings that
configurations are made of. `formats` has one checker for each format name that the API uses.
"""
