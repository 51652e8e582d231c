"""The schema of each kind of file in a site, one module for each kind.

All of them refuse unknown keys and values of a wrong type. They check one file alone;
`stackyard.sources.site.checks` checks the references between files.
"""
