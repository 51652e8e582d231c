variable "name" {
  description = "The name of the VPC, as its tag Name."
  type        = string

  validation {
    condition     = var.name != ""
    error_message = "name is empty."
  }
}

variable "cidr" {
  description = "The IPv4 range of the VPC, such as 10.20.0.0/16."
  type        = string

  validation {
    condition     = can(cidrhost(var.cidr, 0))
    error_message = "cidr is \"${var.cidr}\", which is not an IPv4 range such as 10.20.0.0/16."
  }
}

variable "subnets" {
  description = "The subnets, by name. A public one has a route to the internet, and its instances have public addresses. Without an availability zone, AWS chooses one."
  type = map(object({
    cidr              = string
    availability_zone = optional(string)
    public            = optional(bool, false)
  }))

  validation {
    condition     = length(var.subnets) > 0
    error_message = "subnets is empty: a network without a subnet can hold nothing."
  }
}

variable "tags" {
  description = "Tags of everything in the network."
  type        = map(string)
  default     = {}
}
