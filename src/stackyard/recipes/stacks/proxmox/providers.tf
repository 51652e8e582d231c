terraform {
  required_version = ">= 1.7"

  required_providers {
    proxmox = {
      source  = "bpg/proxmox"
      version = "~> 0.111"
    }
  }
}

# What `proxmox_connection` leaves out comes from the environment: PROXMOX_VE_ENDPOINT, PROXMOX_VE_API_TOKEN, ...
provider "proxmox" {
  endpoint    = try(var.proxmox_connection.url, null)
  insecure    = try(var.proxmox_connection.insecure_tls, null)
  api_token   = try(var.proxmox_connection.token.api_token, null)
  username    = try(var.proxmox_connection.password.username, null)
  password    = try(var.proxmox_connection.password.password, null)
  auth_ticket = try(var.proxmox_connection.ticket.auth_ticket, null)

  csrf_prevention_token = try(var.proxmox_connection.ticket.csrf_prevention_token, null)
}
