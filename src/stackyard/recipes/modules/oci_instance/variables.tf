variable "name" {
  description = "The name of the instance."
  type        = string

  validation {
    condition     = var.name != ""
    error_message = "name is empty."
  }
}

variable "compartment_id" {
  description = "The OCID of the compartment."
  type        = string

  validation {
    condition     = can(regex("^ocid1\\.(compartment|tenancy)\\.", var.compartment_id))
    error_message = "compartment_id is \"${var.compartment_id}\", which is not the OCID of a compartment or a tenancy."
  }
}

variable "availability_domain" {
  description = "The availability domain, such as Uocm:PHX-AD-1."
  type        = string
}

variable "fault_domain" {
  description = "The fault domain; without it, Oracle chooses one."
  type        = string
  default     = null
}

variable "shape" {
  description = "The shape of the instance."
  type        = string
  default     = "VM.Standard.A1.Flex"
}

variable "shape_config" {
  description = "The OCPUs and the memory in GiB of a flexible shape; null for a shape with a fixed size."
  type = object({
    ocpus      = number
    memory_gib = number
  })
  default = { ocpus = 1, memory_gib = 6 }

  validation {
    condition     = (var.shape_config != null) == endswith(var.shape, ".Flex")
    error_message = "shape is \"${var.shape}\": a flexible shape needs shape_config, and another one takes none."
  }
}

variable "image_id" {
  description = "The OCID of the image that the instance boots from. Another one replaces the instance."
  type        = string

  validation {
    condition     = startswith(var.image_id, "ocid1.image.")
    error_message = "image_id is \"${var.image_id}\", which is not the OCID of an image."
  }
}

variable "boot_volume_gib" {
  description = "The size of the boot volume in GiB; Oracle has at least 50."
  type        = number
  default     = 50

  validation {
    condition     = var.boot_volume_gib >= 50
    error_message = "boot_volume_gib is ${var.boot_volume_gib}: a boot volume has at least 50 GiB."
  }
}

variable "kms_key_id" {
  description = "The OCID of the key that encrypts the boot volume; without it, a key of Oracle does."
  type        = string
  default     = null
}

variable "subnet_id" {
  description = "The OCID of the subnet that the instance is in."
  type        = string

  validation {
    condition     = startswith(var.subnet_id, "ocid1.subnet.")
    error_message = "subnet_id is \"${var.subnet_id}\", which is not the OCID of a subnet."
  }
}

variable "public_ip" {
  description = "Whether the instance has a public IPv4 address."
  type        = bool
  default     = false
}

variable "private_ip" {
  description = "The private IPv4 address; without it, Oracle chooses one."
  type        = string
  default     = null
}

variable "hostname_label" {
  description = "The first part of the DNS name in the subnet."
  type        = string
  default     = null
}

variable "network_security_group_ids" {
  description = "The OCIDs of the network security groups that the instance is in."
  type        = list(string)
  default     = []
}

variable "ssh_public_keys" {
  description = "The public SSH keys that may log in as the first user of the image."
  type        = list(string)

  validation {
    condition     = length(var.ssh_public_keys) > 0
    error_message = "ssh_public_keys is empty: nobody could log in."
  }

  validation {
    condition = alltrue([for key in var.ssh_public_keys : can(regex("^(ssh|ecdsa)-", key))])
    error_message = join("\n", [
      for index, key in var.ssh_public_keys :
      "ssh_public_keys[${index}] is not a public SSH key: it begins with neither ssh- nor ecdsa-."
      if !can(regex("^(ssh|ecdsa)-", key))
    ])
  }
}

variable "user_data" {
  description = "The cloud-init data. It is in clear in the state and in the metadata: no secret belongs in it."
  type        = string
  default     = null
}

variable "encryption_in_transit" {
  description = "Whether data between the instance and its volumes is encrypted; the image has to support it."
  type        = bool
  default     = true
}

variable "preserve_boot_volume" {
  description = "Whether the boot volume is kept when the instance is destroyed."
  type        = bool
  default     = false
}

variable "tags" {
  description = "Free-form tags of the instance."
  type        = map(string)
  default     = {}
}
