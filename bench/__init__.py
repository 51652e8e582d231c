"""Figures as ratios against a floor measured in the same run, so that they mean the same on any machine."""
