"""A module proxy of files, with a small program in it that needs a `replace` line as OpenTofu does."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from stackyard.engine.tools.gomod import GoProgram

# Imports nothing but the runtime, so that there is next to nothing to compile.
MAIN = """package main

import "example.test/greeting"

var dev = "yes"

func main() {
	if greeting.Forked && dev == "no" {
		print("the fork")
	} else {
		print("not the fork")
	}
}
"""
GREETING = "package greeting\n\nconst Forked = %s\n"
GOMOD = """module example.test/tiny

go %s

godebug tlsmlkem=0

require example.test/greeting v1.0.0

exclude example.test/greeting v1.0.5

replace example.test/greeting v1.0.0 => example.test/fork v1.0.1
"""
TINY = GoProgram(
    module="example.test/tiny", package="example.test/tiny/cmd/tofu", linker_flags="-s -w -X main.dev=no"
)


class GoProxy:
    """Files as `GOPROXY=file://...` wants them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"file://{folder}"

    def add(self, module: str, version: str, files: dict[str, str]) -> None:
        """Publish a version of a module; its files must have a go.mod."""
        versions = self.folder / module / "@v"
        versions.mkdir(parents=True, exist_ok=True)
        facts = {"Version": version, "Time": "2024-01-01T00:00:00Z"}
        (versions / f"{version}.info").write_text(json.dumps(facts))
        (versions / f"{version}.mod").write_text(files["go.mod"])
        with zipfile.ZipFile(versions / f"{version}.zip", "w") as archive:
            for name, text in files.items():
                archive.writestr(f"{module}@{version}/{name}", text)

    def add_tiny(self, version: str = "v1.12.6", *, gomod: str = GOMOD % "1.24") -> None:
        """Publish the small program and both modules that it can be built with."""
        for module, forked in (("greeting", "false"), ("fork", "true")):
            files = {"go.mod": f"module example.test/{module}\n", "greeting.go": GREETING % forked}
            self.add(f"example.test/{module}", "v1.0.0" if module == "greeting" else "v1.0.1", files)
        self.add("example.test/tiny", version, {"go.mod": gomod, "cmd/tofu/main.go": MAIN})
