terraform {
  required_version = ">= 1.9"

  required_providers {
    proxmox = {
      source  = "bpg/proxmox"
      version = "~> 0.111"
    }
    talos = {
      source  = "siderolabs/talos"
      version = "~> 0.11.0"
    }
  }
}

# If proxmox_connection is left out, PROXMOX_VE_ENDPOINT and PROXMOX_VE_API_TOKEN of the environment are used.
provider "proxmox" {
  endpoint  = var.proxmox_connection == null ? null : var.proxmox_connection.endpoint
  api_token = var.proxmox_connection == null ? null : var.proxmox_connection.api_token
  insecure  = var.proxmox_connection == null ? null : var.proxmox_connection.insecure
}

provider "talos" {}
