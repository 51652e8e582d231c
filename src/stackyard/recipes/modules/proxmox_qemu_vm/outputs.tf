output "id" {
  description = "The ID of the resource."
  value       = proxmox_virtual_environment_vm.this.id
}

output "vm_id" {
  description = "The ID in Proxmox."
  value       = proxmox_virtual_environment_vm.this.vm_id
}

output "name" {
  description = "The name."
  value       = proxmox_virtual_environment_vm.this.name
}

output "node_name" {
  description = "The Proxmox node that it runs on."
  value       = proxmox_virtual_environment_vm.this.node_name
}

output "ipv4_address" {
  description = "The static IPv4 address, or the first one that the agent reports; null while there is none."
  value       = local.is_static ? split("/", var.ipv4_address)[0] : try(local.usable[0], null)
}

output "ipv4_addresses" {
  description = "Every IPv4 address that the agent reports, by network interface."
  value       = proxmox_virtual_environment_vm.this.ipv4_addresses
}

output "ipv6_addresses" {
  description = "Every IPv6 address that the agent reports, by network interface."
  value       = proxmox_virtual_environment_vm.this.ipv6_addresses
}

output "mac_addresses" {
  description = "The MAC addresses, by network interface."
  value       = proxmox_virtual_environment_vm.this.mac_addresses
}
