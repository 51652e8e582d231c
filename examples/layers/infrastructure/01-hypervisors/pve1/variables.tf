variable "target_node" {
  description = "The Proxmox node."
  type        = string
}
