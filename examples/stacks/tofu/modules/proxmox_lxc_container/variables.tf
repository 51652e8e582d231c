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
}

variable "template_file_id" {
  description = "The template that the container is made from, such as local:vztmpl/debian-13.tar.zst."
  type        = string
}

variable "root_password" {
  description = "The password of root."
  type        = string
  sensitive   = true
}

variable "cores" {
  description = "The number of CPU cores."
  type        = number
  default     = 1
}

variable "memory_mib" {
  description = "The memory in MiB."
  type        = number
  default     = 512
}

variable "disk_gib" {
  description = "The size of the root disk in GiB."
  type        = number
  default     = 4
}

variable "datastore_id" {
  description = "The datastore of the root disk."
  type        = string
  default     = "local-lvm"
}

variable "bridge" {
  description = "The bridge of the network interface."
  type        = string
  default     = "vmbr0"
}

variable "tags" {
  description = "Tags, which become groups of the inventory."
  type        = list(string)
  default     = []
}
