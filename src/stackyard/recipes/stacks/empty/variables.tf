# Every variable has a description and a type. Its value is in values.tfvars, or in secrets.tfvars if it is
# sensitive.
variable "secrets" {
  description = "Passwords and tokens of this stack by name. In secrets.tfvars."
  type        = map(string)
  sensitive   = true
}

variable "description" {
  description = "What this stack is for."
  type        = string
}
