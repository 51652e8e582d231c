output "vm_id" {
  description = "The ID in Proxmox."
  value       = proxmox_virtual_environment_container.this.vm_id
}
