"""What several tests need: programs to run, places to find."""
