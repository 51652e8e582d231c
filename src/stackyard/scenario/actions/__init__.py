"""The actions of scenarios, each a dataclass named VerbNoun that does one piece of work on a machine."""
