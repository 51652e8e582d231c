variable "path" {
  description = "The folder of the cluster in the git repository, such as clusters/prod. Another one replaces the installation."
  type        = string

  validation {
    condition     = var.path != "" && !startswith(var.path, "/")
    error_message = "path is \"${var.path}\", which is not a folder from the top of the repository, such as clusters/prod."
  }
}

variable "age_key" {
  description = "The private age key that decrypts what SOPS encrypted in the repository: the text of the key file."
  type        = string
  sensitive   = true

  validation {
    condition     = can(regex("(?m)^AGE-SECRET-KEY-1[0-9A-Z]{58}$", trimspace(var.age_key)))
    error_message = "age_key holds no private age key: a line of it begins with AGE-SECRET-KEY-1. With an empty key, nothing would be decrypted."
  }
}

variable "age_key_revision" {
  description = "A number to raise with each new age key: a write-only value is not compared."
  type        = number
  default     = 1

  validation {
    condition     = var.age_key_revision >= 1
    error_message = "age_key_revision is ${var.age_key_revision}: it begins with 1. Below that, the secret would be empty."
  }
}

variable "namespace" {
  description = "The namespace of Flux."
  type        = string
  default     = "flux-system"
}

variable "age_secret_name" {
  description = "The name of the secret with the age key, as `decryption.secretRef` of a Kustomization names it."
  type        = string
  default     = "sops-age"
}

variable "interval" {
  description = "How often Flux looks at the repository."
  type        = string
  default     = "1m0s"
}

variable "components_extra" {
  description = "More controllers of Flux, such as image-reflector-controller."
  type        = set(string)
  default     = []
}

variable "delete_git_manifests" {
  description = "Whether a destroy also removes the manifests of Flux from the repository."
  type        = bool
  default     = false
}
