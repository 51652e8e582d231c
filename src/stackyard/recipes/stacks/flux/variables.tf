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
  description = "The repository that Flux follows, as https://…"
  type        = string

  validation {
    condition     = startswith(var.git_url, "https://")
    error_message = "git_url is \"${var.git_url}\", which does not begin with https://. For ssh://, change providers.tf."
  }
}

variable "git_branch" {
  description = "The branch that Flux follows."
  type        = string
  default     = "main"
}

variable "git_username" {
  description = "The user that the token belongs to; most services take any name."
  type        = string
  default     = "git"
}

variable "git_token" {
  description = "A token that may push to the repository, in secrets.tfvars."
  type        = string
  sensitive   = true

  validation {
    condition     = length(var.git_token) > 0
    error_message = "git_token is empty: Flux could not push its manifests."
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

variable "age_key_revision" {
  description = "A number to raise with each new age key: OpenTofu does not keep the key, so it cannot compare it."
  type        = number
  default     = 1
}
