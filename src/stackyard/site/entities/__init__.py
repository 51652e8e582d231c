"""What each kind of file in a site may say, one module a kind.

All of them refuse keys that they do not know and values of another type. They look at one file alone; what
files say of one another is the matter of `stackyard.site.checks`.
"""
