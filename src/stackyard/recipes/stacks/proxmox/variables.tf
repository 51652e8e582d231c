variable "resources" {
  description = "The guests: applications by key, each with its hosts in `nodes`. The older form is `resource_groups`: set one of the two."
  type = map(object({
    type            = string
    enabled         = optional(bool, true)
    node_name       = optional(string)
    description     = optional(string, "Managed by OpenTofu")
    tags            = optional(list(string), [])
    on_boot         = optional(bool, false)
    started         = optional(bool, true)
    cloud_init_user = optional(string, "default_user")
    ansible_groups  = optional(map(map(string)), {})
    vm_config = optional(object({
      cpu_cores         = optional(number, 1)
      cpu_sockets       = optional(number, 1)
      memory_size       = optional(number, 1024)
      disk_datastore_id = optional(string)
      disk_size         = optional(number, 8)
      disk_ssd          = optional(bool, false)
      vlan_bridge       = optional(string, "vmbr0")
      vlan_id           = optional(number, 0)
      ipv4_gateway      = optional(string, "192.168.0.1")
      os_type           = optional(string, "ubuntu")
      os_version        = optional(string, "24.04")
      image_file_id     = optional(string)
      additional_disks = optional(list(object({
        size         = number
        datastore_id = optional(string)
        ssd          = optional(bool, false)
        backup       = optional(bool, true)
      })), [])
      pci_devices = optional(list(object({
        mapping     = optional(string)
        id          = optional(string)
        pcie        = optional(bool, true)
        rombar      = optional(bool, true)
        primary_gpu = optional(bool, false)
      })), [])
    }))
    lxc_config = optional(object({
      unprivileged                = optional(bool, true)
      nesting                     = optional(bool, true)
      fuse                        = optional(bool, false)
      keyctl                      = optional(bool, false)
      template_file_id            = optional(string)
      template_url                = optional(string)
      template_checksum           = optional(string)
      template_checksum_algorithm = optional(string, "sha256")
      template_datastore_id       = optional(string)
      os_type                     = optional(string, "unmanaged")
      disk_datastore_id           = optional(string)
      disk_size                   = optional(number, 2)
      cpu_cores                   = optional(number, 1)
      memory_size                 = optional(number, 1024)
      vlan_bridge                 = optional(string, "vmbr0")
      vlan_id                     = optional(number, 0)
      ipv4_gateway                = optional(string, "192.168.0.1")
      mount_points = optional(list(object({
        path      = string
        volume    = string
        size      = optional(string)
        backup    = optional(bool, false)
        read_only = optional(bool, false)
      })), [])
    }))
    nodes = optional(map(object({
      vm_id           = number
      enabled         = optional(bool)
      node_name       = optional(string)
      description     = optional(string)
      tags            = optional(list(string), [])
      on_boot         = optional(bool)
      started         = optional(bool)
      cloud_init_user = optional(string)
      ansible_groups  = optional(map(map(string)), {})
      vm_config = optional(object({
        cpu_cores         = optional(number)
        cpu_sockets       = optional(number)
        memory_size       = optional(number)
        disk_datastore_id = optional(string)
        disk_size         = optional(number)
        disk_ssd          = optional(bool)
        vlan_bridge       = optional(string)
        vlan_id           = optional(number)
        ipv4_address      = optional(string, "dhcp")
        ipv4_gateway      = optional(string)
        os_type           = optional(string)
        os_version        = optional(string)
        image_file_id     = optional(string)
        additional_disks = optional(list(object({
          size         = number
          datastore_id = optional(string)
          ssd          = optional(bool, false)
          backup       = optional(bool, true)
        })))
        pci_devices = optional(list(object({
          mapping     = optional(string)
          id          = optional(string)
          pcie        = optional(bool, true)
          rombar      = optional(bool, true)
          primary_gpu = optional(bool, false)
        })))
      }))
      lxc_config = optional(object({
        unprivileged                = optional(bool)
        nesting                     = optional(bool)
        fuse                        = optional(bool)
        keyctl                      = optional(bool)
        template_file_id            = optional(string)
        template_url                = optional(string)
        template_checksum           = optional(string)
        template_checksum_algorithm = optional(string)
        template_datastore_id       = optional(string)
        os_type                     = optional(string)
        disk_datastore_id           = optional(string)
        disk_size                   = optional(number)
        cpu_cores                   = optional(number)
        memory_size                 = optional(number)
        vlan_bridge                 = optional(string)
        vlan_id                     = optional(number)
        ipv4_address                = optional(string, "dhcp")
        ipv4_gateway                = optional(string)
        mount_points = optional(list(object({
          path      = string
          volume    = string
          size      = optional(string)
          backup    = optional(bool, false)
          read_only = optional(bool, false)
        })))
      }))
    })), {})
  }))
  default = null
}

variable "resource_groups" {
  description = "The guests in the older form: groups by name, each with its hosts in `nodes`. Null where they are in `resources`."
  type = map(object({
    enabled              = bool
    type                 = string
    template             = string
    hardware_profile_key = string
    tags                 = list(string)
    nodes = map(object({
      id = number
      ip = string
    }))
  }))
  default = null
}

variable "hardware_profiles" {
  description = "Hardware for `resource_groups`, by kind and key; `memory` is in MiB, `disk` in GiB."
  type = object({
    qemu = optional(map(object({
      cores  = number
      memory = number
      disk   = number
    })), {})
    lxc = optional(map(object({
      cores  = number
      memory = number
      disk   = number
    })), {})
  })
  default = {}
}

variable "resource_defaults" {
  description = "Where the guests of `resource_groups` are."
  type = object({
    target_node    = optional(string)
    storage_pool   = optional(string)
    network_bridge = optional(string, "vmbr0")
  })
  default = {}
}

variable "network_defaults" {
  description = "The network of the static addresses of `resource_groups`."
  type = object({
    gateway   = optional(string, "192.168.0.1")
    cidr_mask = optional(number, 24)
  })
  default = {}
}

variable "user_profile" {
  description = "The key in `user_credentials` of the user of every guest of `resource_groups`."
  type        = string
  default     = "default_user"
}

variable "target_node" {
  description = "The Proxmox node of containers that name none."
  type        = string
  default     = null
}

variable "target_datastore" {
  description = "The datastore of disks that name none."
  type        = string
  default     = "local-lvm"
}

variable "image_datastore" {
  description = "The datastore of images, and of templates that name none. Its content types need `import` and `vztmpl`."
  type        = string
  default     = "local"
}

variable "os_images" {
  description = "Cloud images by `os_type-os_version`; downloaded to each node that has a VM from them."
  type = map(object({
    url                = string
    file_name          = string
    checksum           = optional(string)
    checksum_algorithm = optional(string)
  }))
  default = {
    "ubuntu-24.04" = {
      url       = "https://cloud-images.ubuntu.com/noble/current/noble-server-cloudimg-amd64.img"
      file_name = "ubuntu-24.04.qcow2"
    }
    "debian-12" = {
      url       = "https://cloud.debian.org/images/cloud/bookworm/latest/debian-12-genericcloud-amd64.qcow2"
      file_name = "debian-12.qcow2"
    }
    "debian-13" = {
      url       = "https://cloud.debian.org/images/cloud/trixie/latest/debian-13-genericcloud-amd64.qcow2"
      file_name = "debian-13.qcow2"
    }
  }
}

variable "dns_servers" {
  description = "The DNS servers of every guest."
  type        = list(string)
  default     = ["8.8.8.8"]
}

variable "environment_name" {
  description = "The workspace that the data are for: another one is refused. Null for any."
  type        = string
  default     = null
}

variable "workspace" {
  description = "The workspace; stackyard sets it."
  type        = string
  default     = "default"
}

variable "proxmox_connection" {
  description = "How to reach Proxmox; null where the environment says it (PROXMOX_VE_ENDPOINT, PROXMOX_VE_API_TOKEN). In secrets.tfvars."
  type = object({
    url          = string
    insecure_tls = optional(bool)
    auth_method  = string
    password     = optional(object({ username = string, password = string }))
    token        = optional(object({ api_token = string }))
    ticket       = optional(object({ auth_ticket = string, csrf_prevention_token = string }))
  })
  default   = null
  sensitive = true

  validation {
    condition = var.proxmox_connection == null || try(
      [for name in ["password", "token", "ticket"] : name if var.proxmox_connection[name] != null] == [var.proxmox_connection.auth_method],
      false,
    )
    error_message = "`proxmox_connection.auth_method` is `password`, `token` or `ticket`, and exactly the block of that name is set."
  }
}

variable "user_credentials" {
  description = "The users of guests by role: a name, and a password or SSH keys. `default_user` is the role of guests that name none. In secrets.tfvars."
  type = map(object({
    username = string
    password = optional(string)
    ssh_keys = optional(list(string), [])
  }))
  sensitive = true

  validation {
    condition     = alltrue([for one in values(var.user_credentials) : length(one.username) > 1])
    error_message = "`user_credentials`: a username has at least two letters."
  }

  validation {
    condition     = alltrue([for one in values(var.user_credentials) : one.password != null || length(one.ssh_keys) > 0])
    error_message = "`user_credentials`: each user needs a password or an SSH key."
  }
}
