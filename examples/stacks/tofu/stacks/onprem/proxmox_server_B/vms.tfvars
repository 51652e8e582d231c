node_name = "pve2"

containers = {
  dns-2 = { vm_id = 302, tags = ["dns"] }
  proxy = { vm_id = 303, tags = ["web"] }
}
