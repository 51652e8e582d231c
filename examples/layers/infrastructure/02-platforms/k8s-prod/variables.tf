variable "cluster_name" {
  description = "The name of the cluster."
  type        = string
}

variable "nodes_count" {
  description = "The number of machines."
  type        = number
}

variable "target_node" {
  description = "The Proxmox node. It is an output of 01-hypervisors/pve1."
  type        = string
}

variable "bridge" {
  description = "The bridge. It is an output of 01-hypervisors/pve1."
  type        = string
}

variable "pool_id" {
  description = "The resource pool. It is an output of 01-hypervisors/pve1."
  type        = string
}
