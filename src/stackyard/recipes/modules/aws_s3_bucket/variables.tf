variable "name" {
  description = "The name of the bucket, unique in all of AWS."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.name))
    error_message = "name is \"${var.name}\": a bucket has 3 to 63 lower-case letters, digits, dots and hyphens."
  }
}

variable "versioning" {
  description = "Whether old versions of objects are kept."
  type        = bool
  default     = true
}

variable "kms_key_arn" {
  description = "The ARN of the KMS key that encrypts objects; without it, the key that S3 manages does."
  type        = string
  default     = null
}

variable "force_destroy" {
  description = "Whether a bucket with objects in it may be destroyed, with all of them."
  type        = bool
  default     = false
}

variable "tags" {
  description = "Tags of the bucket."
  type        = map(string)
  default     = {}
}
