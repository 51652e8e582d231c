variable "region" {
  description = "The OCI region of this stack."
  type        = string

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]+$", var.region))
    error_message = "region is \"${var.region}\", which is not a region such as eu-frankfurt-1."
  }
}

variable "config_file_profile" {
  description = "The profile of ~/.oci/config to use; without it, the environment or DEFAULT."
  type        = string
  default     = null
}

variable "oci_credentials" {
  description = "The keys of OCI, in secrets.tfvars. Leave it out if the environment or ~/.oci/config has them."
  type = object({
    tenancy_ocid = string
    user_ocid    = string
    fingerprint  = string
    private_key  = string
  })
  default   = null
  sensitive = true
}

variable "compartment_id" {
  description = "The OCID of the compartment of this stack."
  type        = string
}

variable "tags" {
  description = "Free-form tags of everything in this stack."
  type        = map(string)
  default     = {}
}

variable "subnets" {
  description = "The OCIDs of existing subnets, by a name for this stack."
  type        = map(string)

  validation {
    condition     = length(var.subnets) > 0
    error_message = "subnets is an empty map: an instance needs a subnet."
  }

  # One rule for all of it: OpenTofu stops at the first rule that fails.
  validation {
    condition = length(concat(
      [for name, id in var.subnets : name if !startswith(id, "ocid1.subnet.")],
      [for name, id in var.subnets : name if length([for other in values(var.subnets) : 1 if other == id]) > 1],
    )) == 0
    error_message = join("\n", concat(
      [
        for name, id in var.subnets :
        "subnets[\"${name}\"] is \"${id}\", which is not the OCID of a subnet."
        if !startswith(id, "ocid1.subnet.")
      ],
      [
        for name, id in var.subnets :
        "subnets[\"${name}\"] is \"${id}\", which another subnet is too."
        if length([for other in values(var.subnets) : 1 if other == id]) > 1
      ],
    ))
  }
}

variable "instances" {
  description = "The virtual machines, by name, each in one of the subnets. `groups` are the groups of the inventory."
  type = map(object({
    subnet              = string
    availability_domain = string
    image_id            = string
    fault_domain        = optional(string)
    shape               = optional(string, "VM.Standard.A1.Flex")
    shape_config = optional(object({
      ocpus      = number
      memory_gib = number
    }))
    boot_volume_gib            = optional(number, 50)
    public_ip                  = optional(bool, false)
    private_ip                 = optional(string)
    hostname_label             = optional(string)
    network_security_group_ids = optional(list(string), [])
    ssh_public_keys            = list(string)
    ssh_user                   = optional(string)
    user_data                  = optional(string)
    groups                     = optional(list(string), [])
    tags                       = optional(map(string), {})
  }))

  validation {
    condition     = length(var.instances) > 0
    error_message = "instances is an empty map: nothing would be left of what this stack made."
  }

  # One rule for all of it: OpenTofu stops at the first rule that fails.
  validation {
    condition = length(concat(
      [for name, one in var.instances : name if !contains(keys(var.subnets), one.subnet)],
      [for name, one in var.instances : name if(one.shape_config != null) != endswith(one.shape, ".Flex")],
      [for name, one in var.instances : name if length(one.ssh_public_keys) == 0],
      [for name, one in var.instances : name if one.private_ip != null && length([
        for other in values(var.instances) : 1 if other.private_ip == one.private_ip && other.subnet == one.subnet
      ]) > 1],
    )) == 0
    error_message = join("\n", concat(
      [
        for name, one in var.instances :
        "instances[\"${name}\"].subnet is \"${one.subnet}\", which is not in subnets."
        if !contains(keys(var.subnets), one.subnet)
      ],
      [
        for name, one in var.instances :
        "instances[\"${name}\"].shape is \"${one.shape}\": a flexible shape needs shape_config, and another one takes none."
        if(one.shape_config != null) != endswith(one.shape, ".Flex")
      ],
      [
        for name, one in var.instances :
        "instances[\"${name}\"].ssh_public_keys is empty: nobody could log in."
        if length(one.ssh_public_keys) == 0
      ],
      [
        for name, one in var.instances :
        "instances[\"${name}\"].private_ip is \"${one.private_ip}\", which another instance has too."
        if one.private_ip != null && length([
          for other in values(var.instances) : 1 if other.private_ip == one.private_ip && other.subnet == one.subnet
        ]) > 1
      ],
    ))
  }
}
