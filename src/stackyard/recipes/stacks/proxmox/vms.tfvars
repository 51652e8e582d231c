# The guests of this stack. Every field is in docs/howto/data-driven-stacks.md of stackyard.
target_node = "pve1"

resources = {
  web = {
    type      = "vm"
    node_name = "pve1"
    tags      = ["web"]
    vm_config = {
      memory_size = 2048
      os_type     = "debian"
      os_version  = "13"
    }
    nodes = {
      web-1 = { vm_id = 1001 }
    }
  }

  dns = {
    type = "lxc"
    tags = ["dns"]
    lxc_config = {
      template_url = "http://download.proxmox.com/images/system/debian-13-standard_13.1-2_amd64.tar.zst"
      os_type      = "debian"
      memory_size  = 512
    }
    nodes = {
      dns-1 = { vm_id = 1002 }
    }
  }
}
