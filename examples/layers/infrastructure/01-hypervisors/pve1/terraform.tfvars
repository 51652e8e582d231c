target_node = "pve1"
