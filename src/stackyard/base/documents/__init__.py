"""The only reader of YAML and JSON from outside, with limits.

A few kilobytes can crash libyaml (it recurses at each level), fill the memory (aliases of aliases, merge
keys of merge keys) or keep a reader busy for hours. So every text from outside is read here. `yamltext` and
`jsontext` refuse early what exceeds the size, depth or number of values in `limits.DocumentLimits`, and
report the line and column. Their errors are those of PyYAML and orjson. A calling package adds the name of
the file.

Import the two modules directly, because PyYAML loads slowly.
"""

from __future__ import annotations
