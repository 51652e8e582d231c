"""The foundation of every package: errors, events, files, processes, graphs, serving."""
