variable "name" {
  description = "The host name."
  type        = string
}

variable "node_name" {
  description = "The Proxmox node that the container runs on."
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
  description = "Tags that every container gets."
  type        = list(string)
  default     = ["OpenTofu"]
}

variable "on_boot" {
  description = "Whether the container starts when its node starts."
  type        = bool
  default     = false
}

variable "started" {
  description = "Whether the container runs."
  type        = bool
  default     = true
}

variable "unprivileged" {
  description = "Whether root in the container is an ordinary user of the node."
  type        = bool
  default     = true
}

variable "nesting" {
  description = "Whether containers may run in it; systemd needs it too. Only for an unprivileged container."
  type        = bool
  default     = true
}

variable "fuse" {
  description = "Whether FUSE file systems may be mounted. Only for an unprivileged container, and only root@pam may set it."
  type        = bool
  default     = false
}

variable "keyctl" {
  description = "Whether the keyctl() system call is allowed, which Docker needs. Only for an unprivileged container, and only root@pam may set it."
  type        = bool
  default     = false
}

variable "template_file_id" {
  description = "The template that the container is made from, such as `local:vztmpl/debian-13.tar.zst`."
  type        = string
}

variable "os_type" {
  description = "The operating system of the template, such as `debian`."
  type        = string
  default     = "unmanaged"
}

variable "cpu_cores" {
  description = "The number of CPU cores."
  type        = number
  default     = 1
}

variable "memory_size" {
  description = "The memory in MiB."
  type        = number
  default     = 1024
}

variable "swap_size" {
  description = "The swap in MiB."
  type        = number
  default     = 0
}

variable "disk_datastore_id" {
  description = "The datastore of the root disk."
  type        = string
  default     = "local-lvm"
}

variable "disk_size" {
  description = "The size of the root disk in GiB."
  type        = number
  default     = 2
}

variable "mount_points" {
  description = "More volumes: `volume` is a datastore (with `size`, such as `10G`), or a path of the node."
  type = list(object({
    path      = string
    volume    = string
    size      = optional(string)
    backup    = optional(bool, false)
    read_only = optional(bool, false)
  }))
  default = []
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

variable "root_password" {
  description = "The password of root; null for none."
  type        = string
  default     = null
  sensitive   = true
}

variable "root_ssh_keys" {
  description = "The public SSH keys of root."
  type        = list(string)
  default     = []
}
