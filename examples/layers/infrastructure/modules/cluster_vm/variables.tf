variable "name" {
  description = "The name of the machine."
  type        = string
}

variable "vm_id" {
  description = "The ID in Proxmox."
  type        = number
}

variable "target_node" {
  description = "The Proxmox node."
  type        = string
}

variable "bridge" {
  description = "The bridge of the network card."
  type        = string
}

variable "mac_address" {
  description = "The address of the network card, for which the DHCP server has a fixed IP address."
  type        = string
}

variable "pool_id" {
  description = "The resource pool."
  type        = string
}

variable "iso_file_id" {
  description = "The installer that the machine starts from."
  type        = string
}
