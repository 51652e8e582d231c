# Name each provider with its source and a `~>` version, such as:
#
#     proxmox = {
#       source  = "bpg/proxmox"
#       version = "~> 0.111"
#     }
terraform {
  required_version = ">= 1.7"

  required_providers {}
}
