variable "name" {
  description = "The name."
  type        = string
}

variable "node_name" {
  description = "The Proxmox node that the VM runs on."
  type        = string
}

variable "vm_id" {
  description = "The ID in Proxmox."
  type        = number
}

variable "image_file_id" {
  description = "The cloud image that the first disk is a copy of, such as local:import/debian-12.qcow2."
  type        = string
}

variable "user_password" {
  description = "The password of the user debian."
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
  default     = 1024
}

variable "disk_gib" {
  description = "The size of the first disk in GiB."
  type        = number
  default     = 8
}

variable "datastore_id" {
  description = "The datastore of the first disk."
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
