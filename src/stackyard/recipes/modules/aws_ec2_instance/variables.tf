variable "name" {
  description = "The name of the instance, as its tag Name."
  type        = string

  validation {
    condition     = var.name != ""
    error_message = "name is empty."
  }
}

variable "ami_id" {
  description = "The image that the instance boots from, such as ami-0123456789abcdef0. Another one replaces the instance."
  type        = string

  validation {
    condition     = can(regex("^ami-[0-9a-f]+$", var.ami_id))
    error_message = "ami_id is \"${var.ami_id}\", which is not the ID of an image, such as ami-0123456789abcdef0."
  }
}

variable "instance_type" {
  description = "The type of the instance. It has to have the architecture of the image."
  type        = string
  default     = "t3.micro"
}

variable "subnet_id" {
  description = "The ID of the subnet that the instance is in."
  type        = string
}

variable "vpc_id" {
  description = "The ID of the VPC of the subnet; needed for the security group of the instance."
  type        = string
  default     = null
}

variable "private_ip" {
  description = "The private IPv4 address; without it, AWS chooses one."
  type        = string
  default     = null
}

variable "public_ip" {
  description = "Whether the instance has a public IPv4 address; without it, the subnet decides."
  type        = bool
  default     = null
}

variable "create_security_group" {
  description = "Whether the instance gets a security group of its own, with `ingress` as its rules."
  type        = bool
  default     = true
}

variable "ingress" {
  description = "What the security group of the instance lets in, by a description: a range of ports from a range of addresses. The protocol -1 is every protocol."
  type = map(object({
    cidr      = string
    protocol  = optional(string, "tcp")
    from_port = optional(number)
    to_port   = optional(number)
  }))
  default = {}

  validation {
    condition = alltrue([
      for rule in values(var.ingress) : can(cidrhost(rule.cidr, 0)) && (rule.protocol == "-1" || rule.from_port != null)
    ])
    error_message = join("\n", [
      for name, rule in var.ingress : "ingress[\"${name}\"] needs a range of addresses as cidr, and from_port unless its protocol is -1."
      if !(can(cidrhost(rule.cidr, 0)) && (rule.protocol == "-1" || rule.from_port != null))
    ])
  }
}

variable "security_group_ids" {
  description = "The IDs of existing security groups that the instance is in too."
  type        = list(string)
  default     = []
}

variable "ssh_public_key" {
  description = "A public SSH key, of which a key pair is made for the instance."
  type        = string
  default     = null

  validation {
    condition     = var.ssh_public_key == null ? true : can(regex("^(ssh|ecdsa)-", var.ssh_public_key))
    error_message = "ssh_public_key is not a public SSH key: it begins with neither ssh- nor ecdsa-."
  }
}

variable "key_name" {
  description = "The name of an existing key pair, in place of `ssh_public_key`."
  type        = string
  default     = null
}

variable "iam_instance_profile" {
  description = "The name of the IAM instance profile."
  type        = string
  default     = null
}

variable "user_data" {
  description = "The cloud-init data. It is in clear in the state and in the metadata: no secret belongs in it."
  type        = string
  default     = null
}

variable "metadata_hop_limit" {
  description = "How many hops an answer of the metadata service may go; 2 lets containers on the instance ask it."
  type        = number
  default     = 1
}

variable "root_volume_gib" {
  description = "The size of the root volume in GiB."
  type        = number
  default     = 8
}

variable "root_volume_type" {
  description = "The type of the root volume."
  type        = string
  default     = "gp3"
}

variable "kms_key_arn" {
  description = "The ARN of the KMS key that encrypts the root volume; without it, the default key of the account does."
  type        = string
  default     = null
}

variable "termination_protection" {
  description = "Whether AWS refuses to terminate the instance."
  type        = bool
  default     = false
}

variable "tags" {
  description = "Tags of the instance and of what belongs to it."
  type        = map(string)
  default     = {}
}
