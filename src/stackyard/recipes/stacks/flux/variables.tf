variable "kubernetes" {
  description = "The address and the certificates of the Kubernetes API: the output `kubernetes` of the stack of the cluster, which stack.yaml names."
  type = object({
    host                   = string
    cluster_ca_certificate = string
    client_certificate     = string
    client_key             = string
  })
  sensitive = true
}

variable "git_url" {
  description = "The repository that Flux follows: https://… with git_token, or ssh://… with git_private_key."
  type        = string

  validation {
    condition     = startswith(var.git_url, "https://") || startswith(var.git_url, "ssh://")
    error_message = "git_url is \"${var.git_url}\", which begins with neither https:// nor ssh://."
  }
}

variable "git_branch" {
  description = "The branch that Flux follows."
  type        = string
  default     = "main"
}

variable "git_token" {
  description = "A token that may push to the repository, in secrets.tfvars; for https://…"
  type        = string
  default     = null
  sensitive   = true

  validation {
    condition     = startswith(var.git_url, "https://") ? try(length(var.git_token) > 0, false) : true
    error_message = "git_token is missing: git_url begins with https://."
  }
}

variable "git_private_key" {
  description = "A private SSH key that may push to the repository, in secrets.tfvars; for ssh://…"
  type        = string
  default     = null
  sensitive   = true

  validation {
    condition     = startswith(var.git_url, "ssh://") ? try(length(var.git_private_key) > 0, false) : true
    error_message = "git_private_key is missing: git_url begins with ssh://."
  }
}

variable "path" {
  description = "The folder of the cluster in the repository."
  type        = string
}

variable "age_key" {
  description = "The private age key, in secrets.tfvars. Without it, the plan fails."
  type        = string
  sensitive   = true
}
