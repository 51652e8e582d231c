variable "name" {
  description = "The name, which is also the host name."
  type        = string
}

variable "node_name" {
  description = "The Proxmox node that the VM runs on."
  type        = string
}

variable "vm_id" {
  description = "The ID in Proxmox."
  type        = number

  validation {
    condition     = var.vm_id >= 100 && var.vm_id <= 999999999 && floor(var.vm_id) == var.vm_id
    error_message = "An ID in Proxmox is a whole number from 100 to 999999999."
  }
}

variable "description" {
  description = "The notes that Proxmox shows."
  type        = string
  default     = "Managed by OpenTofu"
}

variable "tags" {
  description = "Tags, which become groups of the inventory. Proxmox keeps them in small letters."
  type        = list(string)
  default     = []
}

variable "constant_tags" {
  description = "Tags that every VM gets."
  type        = list(string)
  default     = ["OpenTofu"]
}

variable "on_boot" {
  description = "Whether the VM starts when its node starts."
  type        = bool
  default     = false
}

variable "started" {
  description = "Whether the VM runs."
  type        = bool
  default     = true
}

variable "agent_enabled" {
  description = "Whether the image runs the QEMU guest agent, which reports the addresses."
  type        = bool
  default     = true
}

variable "agent_timeout" {
  description = "How long to wait for the agent to report an address, such as `15m`."
  type        = string
  default     = "15m"
}

variable "cpu_cores" {
  description = "The number of CPU cores of each socket."
  type        = number
  default     = 1
}

variable "cpu_sockets" {
  description = "The number of CPU sockets."
  type        = number
  default     = 1
}

variable "cpu_type" {
  description = "The CPU type. `host` is fast; a cluster with different CPUs needs a common one for live migration."
  type        = string
  default     = "host"
}

variable "memory_size" {
  description = "The memory in MiB."
  type        = number
  default     = 1024
}

variable "image_file_id" {
  description = "The cloud image that the first disk is a copy of, such as `local:import/debian-12.qcow2`."
  type        = string
}

variable "disk_datastore_id" {
  description = "The datastore of the disks, of the EFI disk and of the cloud-init drive."
  type        = string
  default     = "local-lvm"
}

variable "disk_size" {
  description = "The size of the first disk (scsi0) in GiB."
  type        = number
  default     = 8
}

variable "disk_ssd" {
  description = "Whether the first disk looks like an SSD to the guest."
  type        = bool
  default     = false
}

variable "additional_disks" {
  description = "More disks, scsi1 and up, in this order; `size` is in GiB."
  type = list(object({
    size         = number
    datastore_id = optional(string)
    ssd          = optional(bool, false)
    backup       = optional(bool, true)
  }))
  default = []

  validation {
    condition     = length(var.additional_disks) <= 30
    error_message = "A VM has at most 30 additional disks."
  }
}

variable "pci_devices" {
  description = "PCI devices of the node, such as a GPU: each with `mapping` (a resource mapping of the cluster) or `id`."
  type = list(object({
    mapping     = optional(string)
    id          = optional(string)
    pcie        = optional(bool, true)
    rombar      = optional(bool, true)
    primary_gpu = optional(bool, false)
  }))
  default = []

  validation {
    condition     = alltrue([for one in var.pci_devices : (one.mapping == null) != (one.id == null)])
    error_message = "Each PCI device has either a `mapping` or an `id`."
  }
}

variable "vlan_bridge" {
  description = "The bridge of the network interface."
  type        = string
  default     = "vmbr0"
}

variable "vlan_id" {
  description = "The VLAN of the network interface; 0 is none."
  type        = number
  default     = 0
}

variable "ipv4_address" {
  description = "`dhcp`, or an address with its mask, such as `192.168.0.5/24`."
  type        = string
  default     = "dhcp"

  validation {
    condition     = var.ipv4_address == "dhcp" || can(cidrhost(var.ipv4_address, 0))
    error_message = "The IPv4 address is `dhcp`, or an address with its mask, such as 192.168.0.5/24."
  }
}

variable "ipv4_gateway" {
  description = "The gateway; used with an address that is not `dhcp`."
  type        = string
  default     = null
}

variable "ipv6_address" {
  description = "`dhcp`, `auto`, or an address with its prefix."
  type        = string
  default     = "dhcp"
}

variable "dns_servers" {
  description = "The DNS servers."
  type        = list(string)
  default     = ["8.8.8.8"]
}

variable "username" {
  description = "The user that cloud-init makes."
  type        = string
}

variable "user_password" {
  description = "The password of the user; null for none."
  type        = string
  default     = null
  sensitive   = true
}

variable "user_ssh_keys" {
  description = "The public SSH keys of the user."
  type        = list(string)
  default     = []
}
