"""The API below `/nodes`: nodes, their guests, storages, networks, disks and tasks."""
