"""The one reader of YAML and JSON that somebody else wrote, with limits.

A few kilobytes can crash libyaml (it calls itself for each level), fill the memory (aliases of aliases, merge
keys of merge keys) or keep a reader busy for hours. So every text from outside is read here: `yamltext` and
`jsontext` refuse what is larger, deeper or more than `limits.Limits` allows before it costs anything, and
say in which line and column. Their errors are those of PyYAML and orjson, so that a package can say in its
own words which file is wrong.

The two are imported by themselves, because PyYAML takes its time.
"""

from __future__ import annotations
