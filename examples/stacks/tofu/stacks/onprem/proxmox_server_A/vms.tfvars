node_name = "pve1"

vms = {
  gpu-worker = { vm_id = 201, cores = 2, memory_mib = 2048, tags = ["gpu", "worker"] }
}

containers = {
  dns-1 = { vm_id = 202, tags = ["dns"] }
}
