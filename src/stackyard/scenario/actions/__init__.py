"""The actions of scenarios, each a dataclass called VerbNoun that does one piece of work on a machine."""
