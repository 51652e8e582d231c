# Every variable has a description and a type. Its value is in values.tfvars, or in secrets.tfvars if it is
# sensitive.
variable "description" {
  description = "What this stack is for."
  type        = string
}
