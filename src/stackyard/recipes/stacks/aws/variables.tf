variable "region" {
  description = "The AWS region of this stack."
  type        = string

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]+$", var.region))
    error_message = "region is \"${var.region}\", which is not a region such as eu-central-1."
  }
}

variable "aws_credentials" {
  description = "The keys of AWS, in secrets.tfvars. Leave it out if the environment has them."
  type = object({
    access_key = string
    secret_key = string
    token      = optional(string)
  })
  default   = null
  sensitive = true
}

variable "tags" {
  description = "Tags of everything in this stack."
  type        = map(string)
  default     = {}
}

# A map that is there has something in it. An empty one is a mistake far more often than a wish to destroy all.
variable "networks" {
  description = "The VPCs, by name. Leave it out if the stack has none."
  type = map(object({
    cidr = string
    tags = optional(map(string), {})
  }))
  default = null

  validation {
    condition     = try(length(var.networks) > 0, true)
    error_message = "networks is an empty map. Leave it out if this stack has no network."
  }

  validation {
    condition     = length(coalesce(var.networks, {})) + length(coalesce(var.buckets, {})) > 0
    error_message = "The stack has neither networks nor buckets: nothing would be left of what it made."
  }

  validation {
    condition = alltrue([for one in values(coalesce(var.networks, {})) : can(cidrhost(one.cidr, 0))])
    error_message = join("\n", [
      for name, one in coalesce(var.networks, {}) :
      "networks[\"${name}\"].cidr is \"${one.cidr}\", which is not an IPv4 range such as 10.20.0.0/16."
      if !can(cidrhost(one.cidr, 0))
    ])
  }
}

variable "subnets" {
  description = "The subnets, by name, each in one of the networks. A public one has a route to the internet, and its instances have public addresses."
  type = map(object({
    network           = string
    cidr              = string
    availability_zone = optional(string)
    public            = optional(bool, false)
  }))
  default = null

  validation {
    condition     = try(length(var.subnets) > 0, true)
    error_message = "subnets is an empty map. Leave it out if this stack has no subnet."
  }

  # One rule for all of it: OpenTofu stops at the first rule that fails.
  validation {
    condition = length(concat(
      [for name, one in coalesce(var.subnets, {}) : name if !contains(keys(coalesce(var.networks, {})), one.network)],
      # A subnet is in its network if its first address has the same prefix, and it is not the larger one.
      [for name, one in coalesce(var.subnets, {}) : name if contains(keys(coalesce(var.networks, {})), one.network) && !try(
        cidrhost("${split("/", one.cidr)[0]}/${split("/", var.networks[one.network].cidr)[1]}", 0) == cidrhost(var.networks[one.network].cidr, 0)
        && tonumber(split("/", one.cidr)[1]) >= tonumber(split("/", var.networks[one.network].cidr)[1]),
        false
      )],
      [for name, one in coalesce(var.subnets, {}) : name if length([for other in values(coalesce(var.subnets, {})) : 1 if other.network == one.network && other.cidr == one.cidr]) > 1],
      [for name in keys(coalesce(var.networks, {})) : name if !contains([for one in values(coalesce(var.subnets, {})) : one.network], name)],
    )) == 0
    error_message = join("\n", concat(
      [
        for name, one in coalesce(var.subnets, {}) :
        "subnets[\"${name}\"].network is \"${one.network}\", which is not in networks."
        if !contains(keys(coalesce(var.networks, {})), one.network)
      ],
      [
        for name, one in coalesce(var.subnets, {}) :
        "subnets[\"${name}\"].cidr is \"${one.cidr}\", which is not a range inside networks[\"${one.network}\"].cidr."
        if contains(keys(coalesce(var.networks, {})), one.network) && !try(
          cidrhost("${split("/", one.cidr)[0]}/${split("/", var.networks[one.network].cidr)[1]}", 0) == cidrhost(var.networks[one.network].cidr, 0)
          && tonumber(split("/", one.cidr)[1]) >= tonumber(split("/", var.networks[one.network].cidr)[1]),
          false
        )
      ],
      [
        for name, one in coalesce(var.subnets, {}) :
        "subnets[\"${name}\"].cidr is \"${one.cidr}\", which another subnet of networks[\"${one.network}\"] has too."
        if length([for other in values(coalesce(var.subnets, {})) : 1 if other.network == one.network && other.cidr == one.cidr]) > 1
      ],
      [
        for name in keys(coalesce(var.networks, {})) :
        "networks[\"${name}\"] has no subnet."
        if !contains([for one in values(coalesce(var.subnets, {})) : one.network], name)
      ],
    ))
  }
}

variable "instances" {
  description = "The EC2 instances, by name, each in one of the subnets. `groups` are the groups of the inventory."
  type = map(object({
    subnet        = string
    ami_id        = string
    instance_type = optional(string, "t3.micro")
    private_ip    = optional(string)
    public_ip     = optional(bool)
    ingress = optional(map(object({
      cidr      = string
      protocol  = optional(string, "tcp")
      from_port = optional(number)
      to_port   = optional(number)
    })), {})
    ssh_public_key         = optional(string)
    key_name               = optional(string)
    ssh_user               = optional(string)
    iam_instance_profile   = optional(string)
    user_data              = optional(string)
    root_volume_gib        = optional(number, 8)
    termination_protection = optional(bool, false)
    groups                 = optional(list(string), [])
    tags                   = optional(map(string), {})
  }))
  default = null

  validation {
    condition     = try(length(var.instances) > 0, true)
    error_message = "instances is an empty map. Leave it out if this stack has no instance."
  }

  # One rule for all of it: OpenTofu stops at the first rule that fails.
  validation {
    condition = length(concat(
      [for name, one in coalesce(var.instances, {}) : name if !contains(keys(coalesce(var.subnets, {})), one.subnet)],
      [for name, one in coalesce(var.instances, {}) : name if one.ssh_public_key != null && one.key_name != null],
      [for name, one in coalesce(var.instances, {}) : name if one.public_ip == true && !try(var.subnets[one.subnet].public, true)],
      # The same address may be used in two networks.
      [for name, one in coalesce(var.instances, {}) : name if one.private_ip != null && length([
        for other in values(coalesce(var.instances, {})) : 1
        if other.private_ip == one.private_ip && try(var.subnets[other.subnet].network == var.subnets[one.subnet].network, false)
      ]) > 1],
    )) == 0
    error_message = join("\n", concat(
      [
        for name, one in coalesce(var.instances, {}) :
        "instances[\"${name}\"].subnet is \"${one.subnet}\", which is not in subnets."
        if !contains(keys(coalesce(var.subnets, {})), one.subnet)
      ],
      [
        for name, one in coalesce(var.instances, {}) :
        "instances[\"${name}\"] has both ssh_public_key and key_name: an instance has one key pair."
        if one.ssh_public_key != null && one.key_name != null
      ],
      [
        for name, one in coalesce(var.instances, {}) :
        "instances[\"${name}\"].public_ip is true, but subnets[\"${one.subnet}\"] is not public."
        if one.public_ip == true && !try(var.subnets[one.subnet].public, true)
      ],
      [
        for name, one in coalesce(var.instances, {}) :
        "instances[\"${name}\"].private_ip is \"${one.private_ip}\", which another instance has too."
        if one.private_ip != null && length([
          for other in values(coalesce(var.instances, {})) : 1
          if other.private_ip == one.private_ip && try(var.subnets[other.subnet].network == var.subnets[one.subnet].network, false)
        ]) > 1
      ],
    ))
  }
}

variable "buckets" {
  description = "The S3 buckets, by name. A name is unique in all of AWS."
  type = map(object({
    versioning    = optional(bool, true)
    kms_key_arn   = optional(string)
    force_destroy = optional(bool, false)
    tags          = optional(map(string), {})
  }))
  default = null

  validation {
    condition     = try(length(var.buckets) > 0, true)
    error_message = "buckets is an empty map. Leave it out if this stack has no bucket."
  }
}
