"""VMs as bpg describes them with its framework: a new one (`vm2`), and one that is cloned (`cloned_vm`)."""
