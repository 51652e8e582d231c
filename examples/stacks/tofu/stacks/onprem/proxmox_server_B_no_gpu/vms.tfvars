# Server B, in the older form of the data. docs/howto/data-driven-stacks.md says how to move to `resources`.
resource_defaults = {
  target_node    = "pve2"
  storage_pool   = "local-lvm"
  network_bridge = "vmbr0"
}

network_defaults = {
  gateway   = "192.168.0.1"
  cidr_mask = 24
}

hardware_profiles = {
  lxc = {
    small  = { cores = 1, memory = 512, disk = 2 }
    medium = { cores = 2, memory = 1024, disk = 4 }
  }
}

resource_groups = {
  dns = {
    enabled              = true
    type                 = "lxc"
    template             = "http://download.proxmox.com/images/system/debian-13-standard_13.1-2_amd64.tar.zst"
    hardware_profile_key = "small"
    tags                 = ["dns"]
    nodes = {
      dns-2 = { id = 302, ip = "dhcp" }
    }
  }

  proxy = {
    enabled              = true
    type                 = "lxc"
    template             = "http://download.proxmox.com/images/system/debian-13-standard_13.1-2_amd64.tar.zst"
    hardware_profile_key = "small"
    tags                 = ["web"]
    nodes = {
      proxy = { id = 303, ip = "192.168.0.33" }
    }
  }
}
