variable "resources" {
  description = "The guests: applications by key, each with its hosts in `nodes`."
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

variable "form" {
  description = "The variable that the user wrote, for messages: `resources`, or `resource_groups` if they were made from that."
  type        = string
  default     = "resources"

  validation {
    condition     = contains(["resources", "resource_groups"], var.form)
    error_message = "The form is `resources` or `resource_groups`."
  }
}

variable "problems" {
  description = "What is wrong with the data already, one sentence each; reported together with what is found here."
  type        = list(string)
  default     = []
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
  description = "The datastore of images, and of templates that name none."
  type        = string
  default     = "local"
}

variable "os_images" {
  description = "The names of the cloud images that a VM may ask for, each `os_type-os_version`."
  type        = list(string)
}

variable "users" {
  description = "The keys of `user_credentials`."
  type        = list(string)
}
