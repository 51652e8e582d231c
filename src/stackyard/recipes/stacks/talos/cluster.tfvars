cluster_name  = "prod"
talos_version = "v1.12.1"
gateway       = "10.0.0.1"
nameservers   = ["10.0.0.1"]
vip           = "10.0.0.10"

nodes = {
  cp-1 = { role = "controlplane", node_name = "pve1", vm_id = 801, address = "10.0.0.11/24" }
  cp-2 = { role = "controlplane", node_name = "pve1", vm_id = 802, address = "10.0.0.12/24" }
  cp-3 = { role = "controlplane", node_name = "pve1", vm_id = 803, address = "10.0.0.13/24" }
  w-1  = { role = "worker", node_name = "pve1", vm_id = 811, address = "10.0.0.21/24" }
}
