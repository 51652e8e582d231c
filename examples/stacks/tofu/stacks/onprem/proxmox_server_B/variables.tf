variable "node_name" {
  description = "The Proxmox node that this stack manages."
  type        = string
}

variable "vms" {
  description = "The virtual machines, by name."
  type = map(object({
    vm_id      = number
    cores      = optional(number, 1)
    memory_mib = optional(number, 1024)
    tags       = optional(list(string), [])
  }))
  default = {}
}

variable "containers" {
  description = "The containers, by name."
  type = map(object({
    vm_id      = number
    cores      = optional(number, 1)
    memory_mib = optional(number, 512)
    tags       = optional(list(string), [])
  }))
  default = {}
}

variable "guest_password" {
  description = "The first password of every guest. It is in secrets.tfvars."
  type        = string
  sensitive   = true
}
