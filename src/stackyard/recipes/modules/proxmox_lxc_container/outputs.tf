output "id" {
  description = "The ID of the resource."
  value       = proxmox_virtual_environment_container.this.id
}

output "vm_id" {
  description = "The ID in Proxmox."
  value       = proxmox_virtual_environment_container.this.vm_id
}

output "name" {
  description = "The host name."
  value       = var.name
}

output "node_name" {
  description = "The Proxmox node that it runs on."
  value       = proxmox_virtual_environment_container.this.node_name
}

output "ipv4_address" {
  description = "The static IPv4 address, or the one that the interface got; null while there is none."
  value = (
    local.is_static
    ? split("/", var.ipv4_address)[0]
    : try(split("/", proxmox_virtual_environment_container.this.ipv4["eth0"])[0], null)
  )
}

output "ipv4_addresses" {
  description = "The IPv4 addresses, by network interface."
  value       = proxmox_virtual_environment_container.this.ipv4
}

output "ipv6_addresses" {
  description = "The IPv6 addresses, by network interface."
  value       = proxmox_virtual_environment_container.this.ipv6
}
