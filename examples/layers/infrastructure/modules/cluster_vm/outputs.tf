output "name" {
  description = "The name of the machine."
  value       = proxmox_virtual_environment_vm.this.name
}

output "vm_id" {
  description = "The ID in Proxmox."
  value       = proxmox_virtual_environment_vm.this.vm_id
}
