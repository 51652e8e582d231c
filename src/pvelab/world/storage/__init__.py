"""Storages and their content: volumes, images, files with their bytes, physical disks."""
