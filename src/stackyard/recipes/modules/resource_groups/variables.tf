variable "resource_groups" {
  description = "The guests in the older form: groups by name, each with its hosts in `nodes`. Null where they are in `resources`."
  type = map(object({
    enabled              = bool
    type                 = string
    template             = string
    hardware_profile_key = string
    tags                 = list(string)
    nodes = map(object({
      id = number
      ip = string
    }))
  }))
  default = null
}

variable "hardware_profiles" {
  description = "Hardware for `resource_groups`, by kind and key; `memory` is in MiB, `disk` in GiB."
  type = object({
    qemu = optional(map(object({
      cores  = number
      memory = number
      disk   = number
    })), {})
    lxc = optional(map(object({
      cores  = number
      memory = number
      disk   = number
    })), {})
  })
  default = {}
}

variable "resource_defaults" {
  description = "Where the guests of `resource_groups` are."
  type = object({
    target_node    = optional(string)
    storage_pool   = optional(string)
    network_bridge = optional(string, "vmbr0")
  })
  default = {}
}

variable "network_defaults" {
  description = "The network of the static addresses of `resource_groups`."
  type = object({
    gateway   = optional(string, "192.168.0.1")
    cidr_mask = optional(number, 24)
  })
  default = {}
}

variable "user_profile" {
  description = "The key in `user_credentials` of the user of every guest of `resource_groups`."
  type        = string
  default     = "default_user"
}

variable "resources_given" {
  description = "Whether the guests are in `resources`: then `resource_groups` must be null."
  type        = bool
}
