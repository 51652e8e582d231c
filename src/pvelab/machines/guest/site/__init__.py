"""Python modules that a guest has beside those of the machine: `apt`, `apt_pkg`, `aptsources`.

They replace Debian's python3-apt and answer from the guest's records, as far as Ansible's modules and small
scripts need. Each is imported from the guest's own `/usr/local` under its plain name.
"""
