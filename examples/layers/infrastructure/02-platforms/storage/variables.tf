variable "target_node" {
  description = "The Proxmox node."
  type        = string
}

variable "vm_id" {
  description = "The ID in Proxmox."
  type        = number
}
