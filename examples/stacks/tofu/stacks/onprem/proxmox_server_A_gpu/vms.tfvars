# Server A, which has a GPU. The form of these data is `resources`; server B has the older one.
target_node = "pve1"

resources = {
  inference = {
    type      = "vm"
    node_name = "pve1"
    tags      = ["gpu", "worker"]
    on_boot   = true

    ansible_groups = {
      inference = { model_folder = "/srv/models" }
    }

    vm_config = {
      os_type          = "debian"
      os_version       = "13"
      cpu_cores        = 4
      memory_size      = 8192
      disk_size        = 32
      additional_disks = [{ size = 100, ssd = true }]
      pci_devices      = [{ mapping = "gpu" }]
    }

    nodes = {
      gpu-worker = { vm_id = 201 }
    }
  }

  dns = {
    type = "lxc"
    tags = ["dns"]

    lxc_config = {
      template_url = "http://download.proxmox.com/images/system/debian-13-standard_13.1-2_amd64.tar.zst"
      memory_size  = 512
    }

    nodes = {
      dns-1 = { vm_id = 202 }
    }
  }
}
