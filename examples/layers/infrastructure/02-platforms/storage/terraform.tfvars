target_node = "pve1"
vm_id       = 1000
