"""The data and behaviour of a lab, without its API: guests, storages, users, tasks, time."""
